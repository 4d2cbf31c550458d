/** One call of a concurrent history. Times come from one counter: a call that ended before another began stands before it. */
export interface RecordedCall<Input, Output> {
  readonly key: string;
  readonly input: Input;
  readonly output: Output;
  readonly began: number;
  /** Infinity: its outcome never became known, so it may have happened at any time since, or never. */
  readonly ended: number;
}

/** What one object does when it is called by one caller at a time. */
export interface SequentialModel<State, Input, Output> {
  readonly initial: State;
  /** The state after a call with this outcome; `undefined` when the outcome is impossible in this state. */
  step(state: State, input: Input, output: Output): State | undefined;
}

/**
 * Whether the calls could have happened one after another, each at some moment between its begin and its end (the search of
 * Wing and Gong, with remembered dead ends). Answers the key whose calls could not; `undefined` when all is well.
 */
export function findNonLinearizableKey<State, Input, Output>(
  history: readonly RecordedCall<Input, Output>[],
  model: SequentialModel<State, Input, Output>,
): string | undefined {
  const byKey = new Map<string, RecordedCall<Input, Output>[]>();
  for (const call of history) {
    const calls = byKey.get(call.key);
    if (calls === undefined) byKey.set(call.key, [call]);
    else calls.push(call);
  }
  for (const [key, calls] of byKey) if (!isLinearizable(calls, model)) return key;
  return undefined;
}

function isLinearizable<State, Input, Output>(
  calls: readonly RecordedCall<Input, Output>[],
  model: SequentialModel<State, Input, Output>,
): boolean {
  const sorted = calls.toSorted((left, right) => left.began - right.began);
  const deadEnds = new Set<string>();
  const done: boolean[] = new Array(sorted.length).fill(false);

  const search = (state: State, left: number): boolean => {
    if (left === 0) return true;
    const place = `${done.map((one) => (one ? '1' : '0')).join('')}:${JSON.stringify(state)}`;
    if (deadEnds.has(place)) return false;
    // A call may come next only if no other open call ended before it began.
    let firstEnd = Number.POSITIVE_INFINITY;
    for (const [index, call] of sorted.entries()) if (!done[index]) firstEnd = Math.min(firstEnd, call.ended);
    for (const [index, call] of sorted.entries()) {
      if (done[index] || call.began > firstEnd) continue;
      done[index] = true;
      const next = model.step(state, call.input, call.output);
      if (next !== undefined && search(next, left - 1)) return true;
      // A call without a known outcome may also never have happened.
      if (call.ended === Number.POSITIVE_INFINITY && search(state, left - 1)) return true;
      done[index] = false;
    }
    deadEnds.add(place);
    return false;
  };
  return search(model.initial, sorted.length);
}
