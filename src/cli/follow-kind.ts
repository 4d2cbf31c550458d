import type { Kind, ResourceQuery } from '../resource/index.ts';
import { isUnavailableError, isUnsupportedError, namespaceDefinition } from '../resource/index.ts';
import type { StateEvent } from '../state/index.ts';
import { listNamespaces } from '../state/index.ts';
import type { CommandContext } from './context.ts';
import { establish } from './establish.ts';
import { watchEnded } from './exit-codes.ts';
import type { Session } from './session.ts';

/** Tells what there is of a kind and every change of it, also after its server was away, until the command is interrupted. */
export async function followKind(
  context: CommandContext,
  session: Session,
  kind: Kind,
  query: ResourceQuery,
  tell: (event: StateEvent) => void,
): Promise<void> {
  const { signal } = context.io;
  await untilInterrupted(context, async () => {
    const watch = await establish(context, () => session.state.follow(kind, { bootstrapContents: true, signal, ...query }));
    await watch.forEach((event) => {
      if (event.type === 'errored') throw event.error;
      tell(event);
    });
  });
}

/** Who ends a watch has what it wanted, also while the watch was being established: that is no failure. */
async function untilInterrupted({ io }: CommandContext, work: () => Promise<void>): Promise<void> {
  try {
    await work();
  } catch (error) {
    if (!io.signal.aborted) throw error;
  }
}

/**
 * Follows something in each of the namespaces, and with `-A` in those that come later too, until the command is
 * interrupted. A store that was closed is an error.
 */
export async function followNamespaces(
  context: CommandContext,
  session: Session,
  type: string,
  namespaces: readonly string[],
  follow: (namespace: string) => Promise<void>,
): Promise<void> {
  const begun = new Set<string>();
  const late: Promise<void>[] = [];
  const begin = (namespace: string): Promise<void> => {
    begun.add(namespace);
    return follow(namespace);
  };
  const first = namespaces.map(begin);
  await new Promise<void>((resolve, reject) => {
    const whole = [...first];
    if (context.options.allNamespaces === true) {
      whole.push(
        followAllNamespaces(context, session, type, (namespace) => {
          if (begun.has(namespace)) return;
          const more = begin(namespace);
          late.push(more);
          more.catch(reject);
        }),
      );
    }
    Promise.all(whole).then(() => resolve(), reject);
  });
  await Promise.all(late);
  if (!context.io.signal.aborted) throw watchEnded();
}

/** The namespaces in which a type has resources; where the store cannot tell, those that somebody registered. */
export async function allNamespaces({ state }: Session, type: string): Promise<readonly string[]> {
  try {
    return await listNamespaces(state, type);
  } catch (error) {
    if (!isUnsupportedError(error)) throw error;
    return (await state.list(namespaceDefinition.kind())).items.map((item) => item.metadata.id).sort();
  }
}

async function followAllNamespaces(
  context: CommandContext,
  session: Session,
  type: string,
  tell: (namespace: string) => void,
): Promise<void> {
  const { signal } = context.io;
  const { state } = session;
  while (state.watchNamespaces !== undefined && !signal.aborted) {
    try {
      const watch = await establish(context, async () => state.watchNamespaces?.(type, { signal }));
      for await (const batch of watch ?? []) {
        for (const event of batch) {
          if (event.type === 'errored') throw event.error;
          if (event.type === 'created') tell(event.resource.metadata.id);
        }
      }
      return;
    } catch (error) {
      if (signal.aborted) return;
      if (isUnsupportedError(error)) break;
      // Its server went away: the next round waits for it.
      if (!isUnavailableError(error)) throw error;
    }
  }
  if (signal.aborted) return;
  await followKind(context, session, namespaceDefinition.kind(), {}, (event) => {
    if (event.type === 'created') tell(event.resource.metadata.id);
  });
}
