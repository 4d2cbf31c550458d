import type { Pointer, Resource } from '../../resource/index.ts';
import { isNotFoundError, pointerText, visibleText } from '../../resource/index.ts';
import type { Condition } from '../../workload/index.ts';
import type { CommandContext } from '../context.ts';
import { deadline, timeoutMs, withSession } from '../context.ts';
import { ExitError, exitCodes, UsageError, watchEnded } from '../exit-codes.ts';
import { companionOf, isAboutPresent, joinStatus } from '../joined.ts';
import { pathForm } from '../output/format.ts';
import { compilePath, valueText } from '../output/jsonpath.ts';
import { commandWords, shellWord } from '../output/names.ts';
import type { Session } from '../session.ts';
import { targetOf } from '../target.ts';
import type { TypesLookup } from '../types-lookup.ts';
import type { WaitAnswer } from './wait-ready.ts';
import { lookReady, waitOn } from './wait-ready.ts';

/** How long a wait takes at most when nobody says, milliseconds. */
const defaultWaitMs = 30_000;

/** `wait TYPE ID --for=…` */
export async function waitCommand(context: CommandContext, typeName: string, id: string, goal: string): Promise<number> {
  const lookOf = readGoal(goal);
  return withSession(context, async (session) => {
    const { types, pointer } = await targetOf(context, session, typeName, id);
    const limitMs = timeoutMs(context, defaultWaitMs);
    if (lookOf === undefined) await waitDestroyed(context, session, pointer, limitMs);
    else await waitOn(context, session, pointer, lookOf(session, types, pointer), limitMs);
    context.io.write(`${visibleText(`${id}: ${goal}`)}\n`);
    return exitCodes.ok;
  });
}

const notSeenYet = 'its controller has not seen the present version yet';

type LookOf = (session: Session, types: TypesLookup, pointer: Pointer) => () => Promise<WaitAnswer>;

/** Reads `--for`. `undefined`: the end is waited for. */
function readGoal(goal: string): LookOf | undefined {
  if (goal === 'destroyed' || goal === 'delete') return undefined;
  if (goal === 'create')
    return (session, _types, pointer) => async () =>
      (await present(session, pointer)) === undefined ? { done: false, reason: 'it does not exist' } : { done: true };
  if (goal === 'ready') return (session, _types, pointer) => () => lookReady(session, pointer);
  const [kind, ...rest] = goal.split('=');
  const text = rest.join('=');
  if (kind === 'condition' && text !== '') {
    const [name = '', wanted = 'True'] = text.split('=');
    return (session, types, pointer) => () => lookCondition(session, types, pointer, name, wanted);
  }
  if (kind === 'jsonpath' && text !== '') {
    // Without braces, as people type it too, a path ends at the first sign of equality.
    const parts = /^(['"]?)(\{.*\}|\.[^={}]*)\1(?:=(.*))?$/s.exec(text);
    if (parts === null) throw new UsageError(`--for=jsonpath: expected jsonpath={.path}=value, found ${goal}`);
    const path = compilePath(parts[2] as string);
    return (session, types, pointer) => async () => {
      const joined = await look(session, types, pointer);
      if (joined === undefined) return { done: false, reason: 'it does not exist' };
      // A status of an older version says nothing about this one.
      const present = joined.companion !== undefined && isAboutPresent(joined.companion, joined.resource);
      const found = path(pathForm(joinStatus(joined.resource, present ? joined.companion : undefined, types)))
        .map(valueText)
        .join(' ');
      const done = parts[3] === undefined ? found !== '' : found === parts[3];
      if (done) return { done };
      if (found === '' && joined.companion !== undefined && !present) return { done, reason: notSeenYet };
      return { done, reason: `${parts[2]} is ${found === '' ? 'not there' : found}` };
    };
  }
  throw new UsageError(`--for: expected ready, destroyed, create, condition=NAME or jsonpath={.path}=value, found ${goal}`);
}

async function look(
  session: Session,
  types: TypesLookup,
  pointer: Pointer,
): Promise<{ readonly resource: Resource; readonly companion: Resource | undefined } | undefined> {
  const resource = await present(session, pointer);
  return resource && { resource, companion: await companionOf(session.state, types, resource) };
}

async function present(session: Session, pointer: Pointer): Promise<Resource | undefined> {
  try {
    return await session.state.get(pointer);
  } catch (error) {
    if (isNotFoundError(error)) return undefined;
    throw error;
  }
}

async function lookCondition(session: Session, types: TypesLookup, pointer: Pointer, name: string, wanted: string): Promise<WaitAnswer> {
  const found = await look(session, types, pointer);
  if (found === undefined) return { done: false, reason: 'it does not exist' };
  // A condition that was computed from an older version says nothing about this one.
  if (found.companion === undefined || !isAboutPresent(found.companion, found.resource)) return { done: false, reason: notSeenYet };
  const status = found.companion.spec as { readonly conditions?: readonly Condition[] };
  const conditions = status.conditions ?? [];
  const condition = conditions.find((each) => each.type.toLowerCase() === name.toLowerCase());
  if (condition?.status.toLowerCase() === wanted.toLowerCase()) return { done: true };
  const reason =
    condition === undefined
      ? `it has no condition ${name}`
      : `${name} is ${condition.status}: ${condition.reason}${condition.message === '' ? '' : `: ${condition.message}`}`;
  const stalled = conditions.find((each) => each.type === 'Stalled' && each.status === 'True');
  return stalled === undefined ? { done: false, reason } : { done: false, reason, failed: `${stalled.reason}: ${stalled.message}` };
}

/** Destroyed of nothing is done at once. */
export async function waitDestroyed(
  context: CommandContext,
  session: Session,
  pointer: Pointer,
  limitMs: number | undefined,
  told?: (resource: Resource) => void,
): Promise<void> {
  using limit = deadline(context, limitMs);
  let uid: string | undefined;
  try {
    for await (const event of await session.state.watch(pointer, { signal: limit.signal })) {
      if (event.type === 'errored') throw event.error;
      if (event.type === 'destroyed') return;
      if (event.type !== 'created' && event.type !== 'updated') continue;
      uid ??= event.resource.metadata.uid;
      if (uid !== event.resource.metadata.uid) return;
      told?.(event.resource);
    }
  } catch (error) {
    // The time may run out before the watch stands.
    if (!limit.expired()) throw error;
  }
  if (limit.expired()) {
    // Also when the time ran out before the first event, what is told is how it is.
    const found = await present(session, pointer);
    if (found === undefined || (uid !== undefined && found.metadata.uid !== uid)) return;
    const holders = found.metadata.finalizers;
    throw new ExitError(
      exitCodes.timedOut,
      `${pointerText(pointer)} is still there${holders.length > 0 ? `; finalizers: ${holders.map(visibleText).join(', ')}` : ''}; ask: steadystate why ${shellWord(pointer.type)} ${commandWords(pointer)}`,
    );
  }
  context.io.signal.throwIfAborted();
  throw watchEnded();
}
