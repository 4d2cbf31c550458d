import type { Environment } from '../../environment/index.ts';
import type { ErrorCode, Resource, ResourceInput } from '../../resource/index.ts';
import { canonicalText, findError } from '../../resource/index.ts';
import type { Capabilities, CoreState, State, StateEvent, Watch, WatchKindOptions } from '../../state/index.ts';
import { wrapCore } from '../../state/index.ts';

export interface ConformanceRow {
  readonly name: string;
  /** Only for stores that say so. */
  readonly needs?: keyof Capabilities;
  readonly run: (tools: RowTools) => Promise<void>;
}

/** How long one awaited event may take, milliseconds. */
const patienceMs = 5_000;

export const kind = { namespace: 'default', type: 'Things.conformance.dev' };

/** A watch that is read step by step. */
export interface EventReader extends AsyncDisposable {
  next(): Promise<StateEvent>;
  take(count: number): Promise<readonly StateEvent[]>;
  /** Asserts that nothing comes before a write to another resource of the kind does. */
  ended(): Promise<boolean>;
}

export interface RowTools {
  readonly core: CoreState;
  readonly state: State;
  readonly environment: Environment;
  thing(id: string, spec?: unknown, more?: Partial<ResourceInput['metadata']>): ResourceInput;
  pointer(id: string): { readonly namespace: string; readonly type: string; readonly id: string };
  read(watch: Promise<Watch>): Promise<EventReader>;
  readKind(options?: WatchKindOptions): Promise<EventReader>;
  same(found: unknown, expected: unknown, what?: string): void;
  rejects(work: Promise<unknown>, code: ErrorCode, reason?: string): Promise<void>;
}

export function rowTools(core: CoreState, environment: Environment): RowTools {
  const state = wrapCore(core, { environment });
  const read = async (opening: Promise<Watch>): Promise<EventReader> => {
    const watch = await opening;
    const iterator = watch[Symbol.asyncIterator]();
    const next = async (): Promise<StateEvent> => {
      const { done, value } = await patiently(environment, iterator.next(), 'an event');
      if (done) throw new Error('the watch ended, expected an event');
      return value;
    };
    return {
      next,
      async take(count) {
        const events: StateEvent[] = [];
        while (events.length < count) events.push(await next());
        return events;
      },
      ended: async () => (await patiently(environment, iterator.next(), 'the end of the watch')).done === true,
      [Symbol.asyncDispose]: () => watch[Symbol.asyncDispose](),
    };
  };
  return {
    core,
    state,
    environment,
    thing: (id, spec = { size: 1 }, more = {}) => ({ metadata: { ...kind, id, ...more }, spec }),
    pointer: (id) => ({ ...kind, id }),
    read,
    readKind: (options) => read(core.watchKind(kind, options)),
    same(found, expected, what = 'value') {
      const [left, right] = [canonicalText(found), canonicalText(expected)];
      if (left !== right) throw new Error(`${what}: expected ${right}, found ${left}`);
    },
    async rejects(work, code, reason) {
      let value: unknown;
      try {
        value = await work;
      } catch (error) {
        const found = findError(error);
        if (found?.code === code && (reason === undefined || found.reason === reason)) return;
        throw new Error(
          `expected ${code}${reason === undefined ? '' : ` (${reason})`}, found ${found === undefined ? String(error) : `${found.code} ${found.reason ?? ''}: ${found.message}`}`,
          { cause: error },
        );
      }
      throw new Error(`expected ${code}, but it succeeded with ${canonicalText(value)}`);
    },
  };
}

async function patiently<Value>(environment: Environment, work: Promise<Value>, what: string): Promise<Value> {
  let timer: Disposable | undefined;
  const late = new Promise<never>((_resolve, reject) => {
    timer = environment.after(patienceMs, () => reject(new Error(`${what} did not come within ${patienceMs} ms`)));
  });
  try {
    return await Promise.race([work, late]);
  } finally {
    timer?.[Symbol.dispose]();
  }
}

/** Type and id of an event, for comparing. */
export function brief(event: StateEvent): string {
  if (event.type === 'created' || event.type === 'updated' || event.type === 'destroyed')
    return `${event.type} ${event.resource.metadata.id}`;
  return event.type;
}

/** The resource of an event about one. */
export function resourceOf(event: StateEvent): Resource {
  if (event.type !== 'created' && event.type !== 'updated' && event.type !== 'destroyed')
    throw new Error(`expected an event about a resource, found ${event.type}`);
  return event.resource as Resource;
}
