import type { Pointer, Resource } from '../../resource/index.ts';
import { findError, isTombstone, pointerText, visibleText } from '../../resource/index.ts';
import type { CommandContext } from '../context.ts';
import { deadline } from '../context.ts';
import { ExitError, exitCodes } from '../exit-codes.ts';
import { statusTypeOf } from '../joined.ts';
import { durationText } from '../output/age.ts';
import type { Session } from '../session.ts';
import { TypesLookup } from '../types-lookup.ts';

/** What a look at a resource says of a wait. */
export type WaitAnswer = { readonly done: true } | { readonly done: false; readonly reason: string; readonly failed?: string };

/**
 * Looks anew at each change of a resource or of its companion, until the look says that it is done. An absent resource is
 * waited for; one that was there and vanished ends it with 3.
 */
export async function waitOn(
  context: CommandContext,
  session: Session,
  pointer: Pointer,
  look: () => Promise<WaitAnswer>,
  limitMs: number | undefined,
): Promise<void> {
  const types = await TypesLookup.read(session.state);
  const statusType = statusTypeOf(types, pointer.type);
  using limit = deadline(context, limitMs);
  const started = context.environment.elapsed();
  let reason = 'it was not looked at yet';
  const wake = new Wake();
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
    wake.ring();
  };
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
      if (limit.expired())
        throw new ExitError(
          exitCodes.timedOut,
          `${pointerText(pointer)}: timed out after ${durationText(context.environment.elapsed() - started)}: ${visibleText(reason)}`,
        );
      limit.signal.throwIfAborted();
      const answer = await look();
      if (answer.done) return;
      reason = answer.reason;
      if (answer.failed !== undefined) throw new ExitError(exitCodes.failed, `${pointerText(pointer)}: ${visibleText(answer.failed)}`);
      if (failure !== undefined) throw failure;
      await wake.wait(limit.signal);
    }
  } catch (error) {
    if (limit.expired() && !(error instanceof ExitError) && findError(error) === undefined) {
      throw new ExitError(
        exitCodes.timedOut,
        `${pointerText(pointer)}: timed out after ${durationText(context.environment.elapsed() - started)}: ${visibleText(reason)}`,
      );
    }
    throw error;
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

/** Waits until all are ready; types that cannot tell count as ready. Answers the worst exit code. */
export async function waitForReady(
  context: CommandContext,
  session: Session,
  resources: readonly Resource['metadata'][],
  limitMs: number | undefined,
): Promise<number> {
  const end = limitMs === undefined ? undefined : context.environment.elapsed() + limitMs;
  for (const pointer of resources) {
    if ((await session.readiness(pointer)) === undefined) continue;
    let told = '';
    await waitOn(
      context,
      session,
      pointer,
      async () => {
        const answer = await lookReady(session, pointer);
        if (!answer.done && answer.reason !== told) {
          told = answer.reason;
          context.io.writeError(`${visibleText(`${pointer.id}: ${told}`)}\n`);
        }
        return answer;
      },
      end === undefined ? undefined : Math.max(0, end - context.environment.elapsed()),
    );
    context.io.write(`${visibleText(pointer.id)} is ready\n`);
  }
  return exitCodes.ok;
}
