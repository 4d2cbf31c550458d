import type { Kind, ResourceQuery } from '../resource/index.ts';
import { namespaceDefinition } from '../resource/index.ts';
import type { StateEvent } from '../state/index.ts';
import type { CommandContext } from './context.ts';
import { establish } from './establish.ts';
import { ExitError, exitCodes } from './exit-codes.ts';
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
  const watch = await establish(context, () => session.state.follow(kind, { bootstrapContents: true, signal, ...query }));
  for await (const event of watch) {
    if (event.type === 'errored') throw event.error;
    tell(event as StateEvent);
  }
}

/**
 * Follows something in each of the namespaces, and with `-A` in those that come later too, until the command is
 * interrupted. A store that was closed is an error.
 */
export async function followNamespaces(
  context: CommandContext,
  session: Session,
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
        followKind(context, session, namespaceDefinition.kind(), {}, (event) => {
          if (event.type !== 'created' || begun.has(event.resource.metadata.id)) return;
          const more = begin(event.resource.metadata.id);
          late.push(more);
          more.catch(reject);
        }),
      );
    }
    Promise.all(whole).then(() => resolve(), reject);
  });
  await Promise.all(late);
  if (!context.io.signal.aborted) throw new ExitError(exitCodes.failed, 'the watch ended: the store was closed');
}
