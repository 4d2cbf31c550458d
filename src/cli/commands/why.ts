import type { Pointer, Resource } from '../../resource/index.ts';
import { isNotFoundError, visibleText } from '../../resource/index.ts';
import { stringifyYaml } from '../../wire/index.ts';
import type { Condition, InventoryEntry } from '../../workload/index.ts';
import type { CommandContext } from '../context.ts';
import { withSession } from '../context.ts';
import { exitCodes, UsageError } from '../exit-codes.ts';
import type { Holder } from '../holders.ts';
import { holdersOf } from '../holders.ts';
import { companionOf } from '../joined.ts';
import { ageText } from '../output/age.ts';
import { jsonText, parseOutput } from '../output/format.ts';
import { commandWords, shellWord } from '../output/names.ts';
import type { Session } from '../session.ts';
import { targetOf } from '../target.ts';
import type { TypesLookup } from '../types-lookup.ts';

/** One thing that is in the way. */
interface Cause {
  readonly about: string;
  readonly reason: string;
  readonly message: string;
  /** RFC 3339; empty: not known. */
  readonly since: string;
}

interface Why {
  readonly resource: string;
  readonly phase: string;
  readonly state: string;
  readonly causes: readonly Cause[];
}

/** `why TYPE ID` */
export async function whyCommand(context: CommandContext, typeName: string, id: string): Promise<number> {
  const format = parseOutput(context.options.output);
  if (format === 'wide' || format === 'name') throw new UsageError('why prints text, yaml, json or jsonpath=TEMPLATE');
  return withSession(context, async (session) => {
    const { types, pointer } = await targetOf(context, session, typeName, id);
    const resource = await session.state.get(pointer);
    const companion = await companionOf(session.state, types, resource);
    const why = await explain(session, types, typeName, resource, companion);
    const { io, environment } = context;
    if (format === 'json') io.write(`${jsonText(why)}\n`);
    else if (format === 'yaml') io.write(stringifyYaml(why));
    else if (typeof format === 'object') io.write(format.jsonPath(why));
    else {
      io.write(`${visibleText(id)} is ${why.state}\n`);
      for (const { about, reason, message, since } of why.causes) {
        const age = since === '' ? '' : ` (for ${ageText(since, environment.now())})`;
        io.write(`  ${visibleText(about)}: ${visibleText(reason)}${age}${message === '' ? '' : `\n      ${visibleText(message)}`}\n`);
      }
    }
    return exitCodes.ok;
  });
}

async function explain(
  session: Session,
  types: TypesLookup,
  typeName: string,
  resource: Resource,
  companion: Resource | undefined,
): Promise<Why> {
  const { metadata } = resource;
  const causes: Cause[] = [];
  const status = (companion?.spec ?? {}) as {
    readonly conditions?: readonly Condition[];
    readonly children?: readonly InventoryEntry[];
    readonly observedVersion?: string;
  };
  const down = metadata.phase === 'tearingDown';
  if (down) {
    for (const holder of await holdersOf(session, resource)) causes.push(causeOf(holder, typeName, metadata));
    if (metadata.finalizers.length === 0)
      causes.push({
        about: 'no finalizer',
        reason: metadata.owner === '' ? 'nobody has destroyed it yet' : `its owner ${metadata.owner} has not destroyed it yet`,
        message: metadata.owner === '' ? `to destroy it now: steadystate delete ${shellWord(typeName)} ${commandWords(metadata)}` : '',
        since: metadata.updated,
      });
  }
  if (companion !== undefined && status.observedVersion !== undefined && status.observedVersion !== metadata.version) {
    causes.push({ about: 'status', reason: 'its controller has not seen the present version yet', message: '', since: metadata.updated });
  }
  for (const condition of status.conditions ?? []) {
    const bad =
      condition.status === 'False' || ((condition.type === 'Stalled' || condition.type === 'Paused') && condition.status === 'True');
    // Ready and Reconciling repeat what the phase at fault says.
    if (bad && condition.type !== 'Ready')
      causes.push({ about: condition.type, reason: condition.reason, message: condition.message, since: condition.lastTransitionTime });
  }
  for (const entry of status.children ?? []) {
    if (entry.ready) continue;
    causes.push({
      about: `child ${entry.kind}/${entry.name}`,
      reason: entry.reason,
      message: entry.message,
      since: entry.lastTransitionTime,
    });
    causes.push(
      ...(await childCauses(session, types, { namespace: entry.namespace, type: `${entry.kind}.${entry.group}`, id: entry.name })),
    );
  }
  const readiness = await session.readiness(metadata);
  if (causes.length === 0 && readiness !== undefined && readiness.readiness.status !== 'Current')
    causes.push({ about: 'readiness', reason: readiness.readiness.reason, message: readiness.readiness.message, since: metadata.updated });
  for (const note of (await session.control?.notes(metadata)) ?? []) {
    if (note.failures > 0)
      causes.push({
        about: `controller ${note.controller}`,
        reason: `failed ${note.failures} times in a row, tries again in ${Math.round(note.nextRunInMs / 1000)}s`,
        message: note.lastError,
        since: note.failingSince,
      });
  }
  const ready = readiness === undefined || readiness.readiness.status === 'Current';
  const state = down ? 'being torn down' : readiness === undefined ? 'there (its type has no readiness)' : ready ? 'ready' : 'not ready';
  return { resource: `${metadata.type}/${metadata.namespace}/${metadata.id}`, phase: metadata.phase, state, causes };
}

/** Who holds it by one finalizer, since when, and because of what. */
function causeOf({ finalizer, actor, since, because, retired }: Holder, typeName: string, pointer: Pointer): Cause {
  const release = retired
    ? `; if none will come back: steadystate release-finalizer ${shellWord(typeName)} ${commandWords(pointer, finalizer)}`
    : '';
  return {
    about: `finalizer ${finalizer}`,
    reason: `held by ${actor}${since === '' ? '' : ` since ${since}`}`,
    message: `because ${because}${release}`,
    since,
  };
}

/** What holds a child that is going, and what its own status says. */
async function childCauses(session: Session, types: TypesLookup, pointer: Pointer): Promise<readonly Cause[]> {
  let child: Resource;
  try {
    child = await session.state.get(pointer);
  } catch (error) {
    if (isNotFoundError(error)) return [];
    throw error;
  }
  const causes: Cause[] = [];
  if (child.metadata.phase === 'tearingDown') {
    for (const holder of await holdersOf(session, child)) {
      const cause = causeOf(holder, pointer.type, pointer);
      causes.push({ ...cause, about: `  ${cause.about} of ${pointer.id}` });
    }
  }
  const status = (await companionOf(session.state, types, child))?.spec as
    | { readonly lastOutput?: unknown; readonly restarts?: unknown }
    | undefined;
  if (typeof status?.lastOutput === 'string' && status.lastOutput !== '') {
    const restarts = typeof status.restarts === 'number' && status.restarts > 0 ? `, ${status.restarts} restarts` : '';
    causes.push({ about: `  last output of ${pointer.id}${restarts}`, reason: status.lastOutput, message: '', since: '' });
  }
  return causes;
}
