import type { Pointer, Readiness } from '../../resource/index.ts';
import { isTombstone, pointerText, visibleText } from '../../resource/index.ts';
import type { CommandContext } from '../context.ts';
import { deadline } from '../context.ts';
import { ExitError, exitCodes, watchEnded } from '../exit-codes.ts';
import { statusTypeOf } from '../joined.ts';
import { LiveView } from '../live-view.ts';
import { elapsedText } from '../output/age.ts';
import { showProgress } from '../progress.ts';
import type { Session } from '../session.ts';
import { TypesLookup } from '../types-lookup.ts';

/** What a look at a resource says of a wait. */
export type WaitAnswer = { readonly done: true } | { readonly done: false; readonly reason: string; readonly failed?: string };

/**
 * Looks anew at each change of a resource or of its companion, until the look says that it is done. An absent resource is
 * waited for; one that was there and vanished ends it with 3. It is looked at once, however short the time.
 */
export async function waitOn(
  context: CommandContext,
  session: Session,
  pointer: Pointer,
  look: () => Promise<WaitAnswer>,
  limitMs: number | undefined,
): Promise<void> {
  const types = await TypesLookup.read(session.state, context.environment);
  const statusType = statusTypeOf(types, pointer.type);
  using limit = deadline(context, limitMs);
  const started = context.environment.elapsed();
  const wake = new Wake();
  using progress = showProgress(context, `waiting for ${pointer.type.split('.')[0]?.toLowerCase()}/${pointer.id}`);
  let seen = false;
  let failure: unknown;
  const watch = async (target: Pointer, own: boolean): Promise<void> => {
    const watching = await session.state.watch(target, { signal: limit.signal });
    await watching.drain((batch) => {
      for (const event of batch) {
        if (event.type === 'errored') failure = event.error;
        if (own && (event.type === 'created' || event.type === 'updated')) seen = true;
        if (own && event.type === 'destroyed' && seen && !isTombstone(event.resource))
          failure = new ExitError(exitCodes.notFound, `${pointerText(pointer)} was destroyed while it was waited for`);
      }
      wake.ring();
    });
    if (!limit.signal.aborted) failure ??= watchEnded();
    wake.ring();
  };
  const timedOut = (reason: string): ExitError =>
    new ExitError(
      exitCodes.timedOut,
      `${pointerText(pointer)}: timed out after ${elapsedText(context.environment.elapsed() - started)}: ${visibleText(reason)}`,
    );
  const watches = [
    watch(pointer, true),
    ...(statusType === undefined ? [] : [watch({ namespace: pointer.namespace, type: statusType, id: pointer.id }, false)]),
  ];
  for (const each of watches) {
    each.catch((error: unknown) => {
      failure ??= error;
      wake.ring();
    });
  }
  try {
    for (;;) {
      if (!limit.expired()) limit.signal.throwIfAborted();
      const answer = await look();
      if (answer.done) return;
      progress.at(answer.reason);
      if (answer.failed !== undefined) throw new ExitError(exitCodes.failed, `${pointerText(pointer)}: ${visibleText(answer.failed)}`);
      // Watches fail when the time runs out; that the resource is gone is known for good.
      if (failure instanceof ExitError) throw failure;
      if (limit.expired()) throw timedOut(answer.reason);
      if (failure !== undefined) throw failure;
      await wake.wait(limit.signal);
    }
  } finally {
    limit[Symbol.dispose]();
    limit.stop();
    await Promise.allSettled(watches);
  }
}

/** Rings once for any number of changes. */
class Wake {
  #rung = false;
  #callback: (() => void) | undefined;

  ring(): void {
    this.#rung = true;
    this.#callback?.();
  }

  async wait(signal: AbortSignal): Promise<void> {
    if (!this.#rung && !signal.aborted) {
      await new Promise<void>((resolve) => {
        this.#callback = resolve;
        signal.addEventListener('abort', () => resolve(), { once: true });
      });
    }
    this.#callback = undefined;
    this.#rung = false;
  }
}

/** Whether a resource is ready at its present version. */
export async function lookReady(session: Session, pointer: Pointer): Promise<WaitAnswer> {
  const found = await session.readiness(pointer);
  if (found === undefined)
    throw new ExitError(
      exitCodes.usage,
      `${pointer.type} has no readiness: it has neither a status nor a rule; wait for condition=…, jsonpath=… or destroyed`,
    );
  const { status, reason, message } = found.readiness;
  if (status === 'Current') return { done: true };
  const text = message === '' ? reason : `${reason}: ${message}`;
  return status === 'Failed' ? { done: false, reason: text, failed: text } : { done: false, reason: text };
}

/** Waits until all are ready, and shows how they come up; types that cannot tell are left out. Answers the worst exit code. */
export async function waitForReady(
  context: CommandContext,
  session: Session,
  types: TypesLookup,
  resources: readonly Pointer[],
  limitMs: number | undefined,
): Promise<number> {
  const { io, environment } = context;
  const subjects: { readonly pointer: Pointer; readonly readiness: Readiness }[] = [];
  for (const pointer of resources) {
    const found = await session.readiness(pointer);
    if (found !== undefined) subjects.push({ pointer, readiness: found.readiness });
  }
  if (subjects.length === 0) return exitCodes.ok;
  const started = environment.elapsed();
  using limit = deadline(context, limitMs);
  await using view = new LiveView(context, session, { types, subjects, tell: (line) => io.writeError(line) });
  const over = new Promise<void>((resolve) => {
    if (limit.signal.aborted) resolve();
    limit.signal.addEventListener('abort', () => resolve(), { once: true });
  });
  await Promise.race([view.settled(), over]);
  const [failed, waiting] = [new Set(view.failed), new Set(view.waiting)];
  await view[Symbol.asyncDispose]();
  const isWaiting = (pointer: Pointer): boolean => [...waiting].some((each) => each.pointer === pointer);
  for (const { pointer } of subjects) if (!isWaiting(pointer)) io.write(`${visibleText(pointer.id)} is ready\n`);
  if (!limit.expired()) io.signal.throwIfAborted();
  let exitCode: number = exitCodes.ok;
  for (const subject of waiting) {
    const { pointer, reason } = subject;
    if (failed.has(subject)) {
      io.writeError(`${pointerText(pointer)}: ${visibleText(reason)}\n`);
      exitCode = Math.max(exitCode, subject.resource === undefined ? exitCodes.notFound : exitCodes.failed);
    } else if (limit.expired()) {
      const elapsed = elapsedText(environment.elapsed() - started);
      io.writeError(`${pointerText(pointer)}: timed out after ${elapsed}: ${visibleText(reason)}\n`);
      exitCode = exitCodes.timedOut;
    }
  }
  return exitCode;
}
