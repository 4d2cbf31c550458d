import type { AnyResourceDefinition } from '../../src/resource/index.ts';
import { sameValue } from '../../src/resource/index.ts';
import { alreadyExists, incarnationConflict, notFound, phaseConflict, versionConflict } from '../../src/state/index.ts';
import type {
  ChildRef,
  GroupKind,
  Live,
  StorePort,
  WorkloadEvent,
  WorkloadKey,
  WorkloadStatus,
  WorkloadView,
} from '../../src/workload/index.ts';
import { kindOfType } from '../../src/workload/index.ts';

type Ref = Pick<ChildRef, 'group' | 'kind' | 'namespace' | 'name'>;

const keyOf = ({ group, kind, namespace, name }: Ref): string => `${kind}.${group}/${namespace}/${name}`;
const pointerOf = ({ group, kind, namespace, name }: Ref): { namespace: string; type: string; id: string } => ({
  namespace,
  type: `${kind}.${group}`,
  id: name,
});

/** Thrown in a test in the place of a process that ends: what was written stays, what was to come does not. */
export class Crash extends Error {}

/** A store in memory behind the port, with a log of what was written and read, and a place for faults. */
export class FakePort implements StorePort {
  readonly caps = { garbageCollector: false, ownerReferences: false, namespaces: false, events: true };
  readonly owner = 'operator';
  readonly objects = new Map<string, Live>();
  readonly workloadsByKey = new Map<string, WorkloadView>();
  readonly #statusVersions = new Map<string, number>();
  /** One line a write that had an effect. */
  readonly writes: string[] = [];
  readonly reads: string[] = [];
  readonly events: WorkloadEvent[] = [];
  /** Called before each write; what it throws is the answer. */
  before: (write: string) => void | Promise<void> = () => {};
  /** Called after each write took effect. */
  after: (write: string) => void = () => {};
  /** Called before each read of a child. */
  reading: (read: string) => void = () => {};
  #serial = 0;

  async workloads(kind: GroupKind): Promise<readonly WorkloadKey[]> {
    return [...this.workloadsByKey.values()].map(({ key }) => key).filter((key) => key.kind === kind.kind && key.group === kind.group);
  }

  async workload(key: WorkloadKey): Promise<WorkloadView | undefined> {
    return this.workloadsByKey.get(keyOf(key));
  }

  async get(ref: ChildRef): Promise<Live | undefined> {
    this.reads.push(`get ${ref.kind}/${ref.name}`);
    this.reading(`get ${ref.kind}/${ref.name}`);
    return this.objects.get(keyOf(ref));
  }

  async list(
    { group, kind }: GroupKind,
    { namespace, labels = {} }: { readonly namespace?: string; readonly labels?: Readonly<Record<string, string>> },
  ): Promise<readonly Live[]> {
    this.reads.push(`list ${kind}`);
    this.reading(`list ${kind}`);
    return [...this.objects.values()].filter(
      (live) =>
        live.ref.group === group &&
        live.ref.kind === kind &&
        (namespace === undefined || live.ref.namespace === namespace) &&
        Object.entries(labels).every(([name, value]) => live.labels[name] === value),
    );
  }

  diff(desired: Parameters<StorePort['diff']>[0], live: Live): 'same' | 'differs' {
    const same =
      sameValue(desired.body, live.body) && sameValue(desired.labels, live.labels) && sameValue(desired.annotations, live.annotations);
    return same ? 'same' : 'differs';
  }

  async apply(desired: Parameters<StorePort['apply']>[0], options: Parameters<StorePort['apply']>[1]): ReturnType<StorePort['apply']> {
    const { ref, labels, annotations, body } = desired;
    const name = `${ref.kind}/${ref.name}`;
    await this.before(`apply ${name}`);
    const key = keyOf(ref);
    const found = this.objects.get(key);
    if (options.live === undefined) {
      if (found !== undefined) throw alreadyExists(pointerOf(ref));
      const live = this.put({ ref, labels, annotations, body, owner: this.owner });
      this.#wrote(`create ${name}`);
      return { outcome: 'created', live: this.objects.get(key) ?? live };
    }
    if (found === undefined) throw notFound(pointerOf(ref));
    if (found.uid !== options.live.uid) throw incarnationConflict(pointerOf(ref), options.live.uid, found.uid);
    if (found.deleting) throw phaseConflict(pointerOf(ref), 'running', 'tearingDown');
    if (found.version !== options.live.version) throw versionConflict(pointerOf(ref), options.live.version, found.version);
    if (this.diff(desired, found) === 'same') return { outcome: 'unchanged', live: found };
    const live = this.put({ ...found, labels, annotations, body, owner: this.owner });
    this.#wrote(`update ${name}`);
    return { outcome: 'changed', live };
  }

  async remove(ref: ChildRef, uid: string): Promise<'gone' | 'terminating'> {
    const name = `${ref.kind}/${ref.name}`;
    await this.before(`remove ${name}`);
    const key = keyOf(ref);
    const found = this.objects.get(key);
    if (found === undefined || found.uid !== uid) return 'gone';
    if (!found.deleting) {
      this.put({ ...found, deleting: true });
      this.#wrote(`teardown ${name}`);
      return 'terminating';
    }
    if (found.finalizers.length > 0) return 'terminating';
    this.objects.delete(key);
    this.#wrote(`destroy ${name}`);
    return 'gone';
  }

  async release(ref: ChildRef, uid: string): Promise<void> {
    await this.before(`release ${ref.kind}/${ref.name}`);
    const found = this.objects.get(keyOf(ref));
    if (found === undefined || found.uid !== uid) return;
    const mine = ([name]: readonly [string, string]): boolean => !name.startsWith('steadystate.dev/parent');
    this.put({
      ...found,
      owner: '',
      labels: Object.fromEntries(Object.entries(found.labels).filter(mine)),
      annotations: Object.fromEntries(Object.entries(found.annotations).filter(mine)),
    });
    this.#wrote(`release ${ref.kind}/${ref.name}`);
  }

  async addFinalizer(view: WorkloadView, name: string): Promise<WorkloadView> {
    await this.before('add finalizer');
    const stored = this.#stored(view);
    if (stored.finalizers.includes(name)) return stored;
    const next = this.#putWorkload({ ...stored, finalizers: [...stored.finalizers, name] });
    this.#wrote('add finalizer');
    return next;
  }

  async removeFinalizer(view: WorkloadView, name: string): Promise<void> {
    await this.before('remove finalizer');
    const stored = this.workloadsByKey.get(keyOf(view.key));
    if (stored === undefined || stored.uid !== view.uid || !stored.finalizers.includes(name)) return;
    this.#putWorkload({ ...stored, finalizers: stored.finalizers.filter((other) => other !== name) });
    this.#wrote('remove finalizer');
  }

  async writeStatus(view: WorkloadView, next: WorkloadStatus): Promise<WorkloadView> {
    await this.before('status');
    const stored = this.#stored(view);
    const key = keyOf(view.key);
    const version = this.#statusVersions.get(key) ?? 0;
    if (view.handle !== version) throw versionConflict(pointerOf(view.key), String(view.handle), String(version));
    if (stored.status !== undefined && sameValue(stored.status, next)) return stored;
    this.#statusVersions.set(key, version + 1);
    const written = { ...stored, status: next, handle: version + 1 };
    this.workloadsByKey.set(key, written);
    this.#wrote('status');
    return written;
  }

  async removeStatus(view: WorkloadView): Promise<void> {
    await this.before('remove status');
    const stored = this.workloadsByKey.get(keyOf(view.key));
    if (stored?.status === undefined) return;
    this.workloadsByKey.set(keyOf(view.key), { ...stored, status: undefined });
    this.#wrote('remove status');
  }

  async namespaceState(): Promise<'unknown'> {
    return 'unknown';
  }

  async watch(): Promise<AsyncDisposable> {
    return { [Symbol.asyncDispose]: async () => {} };
  }

  emit(event: WorkloadEvent): void {
    this.events.push(event);
  }

  /** Puts an object there as somebody else would: nothing of it is in the log. */
  put(live: Partial<Live> & Pick<Live, 'ref'>): Live {
    const serial = ++this.#serial;
    const stored: Live = Object.freeze({
      uid: `uid-${serial}`,
      generation: undefined,
      deleting: false,
      finalizers: [],
      labels: {},
      annotations: {},
      owner: '',
      body: {},
      status: undefined,
      ...live,
      version: String(serial),
    });
    this.objects.set(keyOf(live.ref), stored);
    return stored;
  }

  /** Changes an object as somebody else would. */
  change(ref: Ref, change: Partial<Live>): void {
    const found = this.objects.get(keyOf(ref));
    if (found === undefined) throw notFound(pointerOf(ref));
    this.put({ ...found, ...change });
  }

  child(ref: Ref): Live | undefined {
    return this.objects.get(keyOf(ref));
  }

  destroy(ref: Ref): void {
    this.objects.delete(keyOf(ref));
  }

  /** Creates or changes a workload as a user would; a new spec is a new generation. */
  user(key: WorkloadKey, change: Partial<WorkloadView>): WorkloadView {
    const found = this.workloadsByKey.get(keyOf(key));
    const base: WorkloadView = found ?? {
      key,
      uid: `uid-${++this.#serial}`,
      version: '',
      generation: 0,
      deleting: false,
      finalizers: [],
      labels: {},
      annotations: {},
      spec: {},
      status: undefined,
      handle: this.#statusVersions.get(keyOf(key)) ?? 0,
    };
    const grown = found === undefined || 'spec' in change || 'deleting' in change;
    return this.#putWorkload({ ...base, ...change, generation: base.generation + (grown ? 1 : 0) });
  }

  /** Writes a status as somebody else would. */
  intrude(key: WorkloadKey, change: (status: WorkloadStatus) => WorkloadStatus): void {
    const found = this.workloadsByKey.get(keyOf(key));
    if (found?.status === undefined) throw new Error('there is no status');
    const version = (this.#statusVersions.get(keyOf(key)) ?? 0) + 1;
    this.#statusVersions.set(keyOf(key), version);
    this.workloadsByKey.set(keyOf(key), { ...found, status: change(found.status), handle: version });
  }

  #stored(view: WorkloadView): WorkloadView {
    const stored = this.workloadsByKey.get(keyOf(view.key));
    if (stored === undefined) throw notFound(pointerOf(view.key));
    if (stored.uid !== view.uid) throw incarnationConflict(pointerOf(view.key), view.uid, stored.uid);
    return stored;
  }

  #putWorkload(view: WorkloadView): WorkloadView {
    const stored = Object.freeze({ ...view, version: String(++this.#serial) });
    this.workloadsByKey.set(keyOf(view.key), stored);
    return stored;
  }

  #wrote(line: string): void {
    this.writes.push(line);
    this.after(line);
  }
}

/** The reference of a child of a definition. */
export function refIn(definition: AnyResourceDefinition, name: string, namespace = 'default'): ChildRef {
  return { ...kindOfType(definition.type), version: '', namespace, name };
}
