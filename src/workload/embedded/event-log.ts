import type { Environment, Logger } from '../../environment/index.ts';
import type { Resource, ResourceDefinition, StandardSchemaV1 } from '../../resource/index.ts';
import { defineResource, digest, isAlreadyExistsError, isNotFoundError } from '../../resource/index.ts';
import type { ControllerContext } from '../../runtime/index.ts';
import { typeOfKind } from '../define-workload.ts';
import type { ChildRef, WorkloadEvent } from '../port.ts';

/** What happened to a workload, kept as a resource; the same again raises the count. */
export interface EventSpec {
  readonly type: WorkloadEvent['type'];
  readonly reason: WorkloadEvent['reason'] | 'FinalizerReleasing' | 'FinalizerReleased' | 'FinalizerReleaseFailed';
  readonly note: string;
  /** The workload, or the resource whose finalizer was released. */
  readonly regarding: { readonly type: string; readonly namespace: string; readonly id: string };
  /** The child. */
  readonly related?: { readonly type: string; readonly namespace: string; readonly id: string };
  readonly count: number;
  /** RFC 3339. */
  readonly firstSeen: string;
  /** RFC 3339. */
  readonly lastSeen: string;
  /** The whole record of a finalizer that was taken away by hand. */
  readonly release?: FinalizerRelease;
}

/** Who took which finalizer away, and from what. */
export interface FinalizerRelease {
  readonly finalizer: string;
  /** As the caller told it. */
  readonly by: string;
  /** What was known of the one that had set it. */
  readonly holder: string;
  /** The incarnation, its version, phase, owner and all finalizers before. */
  readonly uid: string;
  readonly version: string;
  readonly phase: string;
  readonly owner: string;
  readonly finalizers: readonly string[];
  /** `begun` for good: whoever did it did not live to say more. `unknown`: the answer to the write was lost. */
  readonly outcome: 'begun' | 'released' | 'failed' | 'unknown';
}

const anyEvent: StandardSchemaV1<EventSpec, EventSpec> = {
  '~standard': { version: 1, vendor: 'steadystate', validate: (value) => ({ value: value as EventSpec }) },
};

/** Recorded events, in the namespace of the workload that they are about. */
export const eventDefinition: ResourceDefinition<EventSpec> = defineResource({
  type: 'Events.steadystate.dev',
  spec: anyEvent,
  printColumns: [
    { name: 'LAST SEEN', jsonPath: '{.spec.lastSeen}' },
    { name: 'TYPE', jsonPath: '{.spec.type}' },
    { name: 'REASON', jsonPath: '{.spec.reason}' },
    { name: 'OBJECT', jsonPath: '{.spec.regarding.id}' },
    { name: 'COUNT', jsonPath: '{.spec.count}' },
    { name: 'NOTE', jsonPath: '{.spec.note}' },
  ],
});

interface Waiting {
  readonly event: WorkloadEvent;
  count: number;
  readonly at: string;
}

/**
 * Collects what a controller tells and writes it between reconciles. Each namespace keeps at most `limit` events of this
 * controller; the ones seen longest ago go first. An event that cannot be written is logged and left: telling never fails
 * anything.
 */
export class EventLog {
  readonly #environment: Environment;
  readonly #limit: number;
  readonly #waiting = new Map<string, Waiting>();
  /** Ids of this controller's events by namespace, the longest unseen first; filled at the first write. */
  readonly #kept = new Map<string, Set<string>>();

  constructor(environment: Environment, limit: number) {
    this.#environment = environment;
    this.#limit = limit;
  }

  add(event: WorkloadEvent): void {
    const id = seriesId(event);
    const key = `${event.regarding.namespace}\u0000${id}`;
    const before = this.#waiting.get(key);
    if (before !== undefined) before.count++;
    else this.#waiting.set(key, { event, count: 1, at: this.#environment.timestamp() });
    // Nobody flushes any more (the controller stopped): a map that only grows helps nobody.
    if (this.#waiting.size > this.#limit) this.#waiting.delete(this.#waiting.keys().next().value as string);
  }

  async flush(context: ControllerContext, log: Logger): Promise<void> {
    const waiting = [...this.#waiting.values()];
    this.#waiting.clear();
    for (const each of waiting) {
      try {
        await this.#write(context, each);
      } catch (error) {
        if (context.signal.aborted) return;
        log.log('warn', 'an event could not be recorded', { error });
      }
    }
  }

  async #write(context: ControllerContext, { event, count, at }: Waiting): Promise<void> {
    const { namespace } = event.regarding;
    const kept = this.#kept.get(namespace) ?? (await this.#load(context, namespace));
    const id = seriesId(event);
    const pointer = eventDefinition.pointer(id, namespace);
    const again = kept.delete(id) && (await raise(context, pointer, count, at));
    if (!again) await this.#create(context, event, id, count, at);
    kept.add(id);
    for (const old of kept) {
      if (kept.size <= this.#limit) break;
      kept.delete(old);
      await forget(context, eventDefinition.pointer(old, namespace));
    }
  }

  async #load(context: ControllerContext, namespace: string): Promise<Set<string>> {
    const { items } = await context.list(eventDefinition.kind(namespace));
    const own = items.filter(({ metadata }) => metadata.owner === context.name).sort(byLastSeen);
    const kept = new Set(own.map(({ metadata }) => metadata.id));
    this.#kept.set(namespace, kept);
    return kept;
  }

  async #create(context: ControllerContext, event: WorkloadEvent, id: string, count: number, at: string): Promise<void> {
    const { regarding, related, type, reason, note } = event;
    const place = (ref: ChildRef | WorkloadEvent['regarding']): EventSpec['regarding'] => ({
      type: typeOfKind(ref),
      namespace: ref.namespace,
      id: ref.name,
    });
    const spec = {
      type,
      reason,
      note,
      regarding: place(regarding),
      ...(related && { related: place(related) }),
      count,
      firstSeen: at,
      lastSeen: at,
    };
    try {
      await context.create(eventDefinition.create({ id, namespace: regarding.namespace, spec }));
    } catch (error) {
      if (!isAlreadyExistsError(error)) throw error;
      await raise(context, eventDefinition.pointer(id, regarding.namespace), count, at);
    }
  }
}

/** `false` when it is not there any more. */
async function raise(
  context: ControllerContext,
  pointer: ReturnType<typeof eventDefinition.pointer>,
  count: number,
  at: string,
): Promise<boolean> {
  try {
    await context.updateWithConflicts(pointer, (draft) => {
      draft.spec.count += count;
      draft.spec.lastSeen = at;
    });
    return true;
  } catch (error) {
    if (isNotFoundError(error)) return false;
    throw error;
  }
}

async function forget(context: ControllerContext, pointer: ReturnType<typeof eventDefinition.pointer>): Promise<void> {
  try {
    await context.destroy(pointer);
  } catch (error) {
    if (!isNotFoundError(error)) throw error;
  }
}

function byLastSeen(left: Resource<EventSpec>, right: Resource<EventSpec>): number {
  return left.spec.lastSeen < right.spec.lastSeen ? -1 : left.spec.lastSeen > right.spec.lastSeen ? 1 : 0;
}

/** Equal events are one series. */
function seriesId({ regarding, related, type, reason, note }: WorkloadEvent): string {
  return eventId(regarding.name, digest([regarding, related ?? null, type, reason, note]));
}

/** An id that a person recognises by the name of what it is about, as far as there is room; the digest tells events apart. */
export function eventId(name: string, digested: string): string {
  const start = digested.indexOf(':') + 1;
  // By whole characters: half of one is no text.
  return `${[...name].slice(0, 200).join('')}.${digested.slice(start, start + 16)}`;
}
