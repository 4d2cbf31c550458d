import { strict as assert } from 'node:assert';
import { errorCode, findError } from '../../resource/index.ts';
import type { CoreState } from '../../state/index.ts';
import type { RecordedCall, SequentialModel } from '../linearizability.ts';
import { findNonLinearizableKey } from '../linearizability.ts';
import type { World } from './world.ts';

type FastCheck = typeof import('fast-check');
type Arbitrary<Value> = import('fast-check').Arbitrary<Value>;

/** `increment` is a get, and an update of what it answered. */
export type ClientCall = 'create' | 'get' | 'update' | 'increment' | 'destroy';
type SingleCall = Exclude<ClientCall, 'increment'>;

export interface ClientStep {
  readonly key: string;
  readonly call: ClientCall;
  /** Macrotasks to wait before it. */
  readonly pause: number;
}

export const clientKeys = ['a', 'b'] as const;

export function clientsOf(fc: FastCheck, maxSteps: number): Arbitrary<(readonly ClientStep[])[]> {
  const call = fc.constantFrom<ClientCall>('create', 'get', 'update', 'increment', 'increment', 'increment', 'destroy');
  const step = fc.record({ key: fc.constantFrom(...clientKeys), call, pause: fc.nat(1) });
  return fc.array(fc.array(step, { maxLength: maxSteps, size: 'max' }), { minLength: 2, maxLength: 4, size: 'max' });
}

interface ClientInput {
  readonly call: SingleCall;
  /** The version that an update stands on. */
  readonly version?: string;
}

/** The version that is stored after a success (of a get: that was read), or how the call failed; `unknown`: nobody knows whether it happened. */
type ClientOutput = { readonly version: string } | { readonly failed: string } | 'unknown';

/** Some version that nobody has seen yet. */
const unseen = '?';

/** One resource as the sequence of its versions; `''`: it is not there. */
const versionedRegister: SequentialModel<string, ClientInput, ClientOutput> = {
  initial: '',
  step(state, { call, version }, output) {
    const standsOnIt = version === state || state === unseen;
    if (output === 'unknown') {
      if (call === 'destroy') return state === '' ? undefined : '';
      if (call === 'create') return state === '' ? unseen : undefined;
      return state !== '' && standsOnIt ? unseen : undefined;
    }
    if ('failed' in output) {
      const mayDiffer = version !== state;
      const expected =
        call === 'create' ? state !== '' && 'alreadyExists' : state === '' ? 'NotFound' : call === 'update' && mayDiffer && 'version';
      return output.failed === expected ? state : undefined;
    }
    if (call === 'get') return state !== '' && (output.version === state || state === unseen) ? output.version : undefined;
    if (call === 'create') return state === '' ? output.version : undefined;
    if (call === 'destroy') return state === '' ? undefined : '';
    return state !== '' && standsOnIt ? output.version : undefined;
  },
};

/** What clients did and saw, with the order of begins and ends. */
export class ClientHistory {
  readonly #calls: RecordedCall<ClientInput, ClientOutput>[] = [];
  #clock = 0;

  /** Every version that an answer named. */
  get versions(): readonly string[] {
    return this.#calls.flatMap(({ output }) =>
      output !== 'unknown' && 'version' in output && output.version !== '' ? [output.version] : [],
    );
  }

  /**
   * One client, which calls one after another; an update stands on the newest version that it has seen. Once `crashed` resolves, it
   * stops, and what it waits for then may have happened or not. `onCall` is told of each answer.
   */
  async run(world: World, steps: readonly ClientStep[], crashed?: Promise<void>, onCall = (): void => {}): Promise<void> {
    const { core } = world;
    const seen = new Map<string, string>();
    let stopped = false;
    void crashed?.then(() => {
      stopped = true;
    });
    for (const { key, call, pause } of steps) {
      for (let turn = 0; turn < pause; turn++) await world.environment.breathe();
      for (const each of call === 'increment' ? (['get', 'update'] as const) : [call]) {
        if (stopped) return;
        const version = seen.get(key) ?? '0';
        const began = this.#clock++;
        const outcome = perform(world, core, key, each, version);
        const output =
          crashed === undefined ? await outcome : await Promise.race([outcome.then(orUnknown), crashed.then(() => 'unknown' as const)]);
        // What was read by nobody tells nothing.
        if (output === 'unknown' && each === 'get') return;
        const ended = output === 'unknown' ? Number.POSITIVE_INFINITY : this.#clock++;
        this.#calls.push({ key, input: each === 'update' ? { call: each, version } : { call: each }, output, began, ended });
        if (output !== 'unknown' && 'version' in output && output.version !== '') seen.set(key, output.version);
        onCall();
      }
    }
  }

  /** Fails when no order of the calls explains what was seen. */
  expectLinearizable(): void {
    const key = findNonLinearizableKey(this.#calls, versionedRegister);
    const calls = this.#calls.filter((call) => call.key === key).map((call) => JSON.stringify(call));
    assert.equal(key, undefined, `K1: no order explains what was seen of ${key}:\n${calls.join('\n')}`);
  }
}

async function perform(world: World, core: CoreState, id: string, call: SingleCall, version: string): Promise<ClientOutput> {
  try {
    if (call === 'create') return { version: (await core.create(world.thing(id))).metadata.version };
    if (call === 'get') return { version: (await core.get(world.pointer(id))).metadata.version };
    if (call === 'update') return { version: (await core.update(world.thing(id), { currentVersion: version })).metadata.version };
    await core.destroy(world.pointer(id));
    return { version: '' };
  } catch (error) {
    return { failed: findError(error)?.reason ?? errorCode(error) ?? String(error) };
  }
}

/** A store that ends in the middle of a call cannot tell more. */
function orUnknown(output: ClientOutput): ClientOutput {
  const ended = output !== 'unknown' && 'failed' in output && ['Ambiguous', 'Unavailable', 'Closed'].includes(output.failed);
  return ended ? 'unknown' : output;
}
