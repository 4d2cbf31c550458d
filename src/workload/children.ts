import { comparableDigests, digest, freezeSpec, nameProblem, thrownText } from '../resource/index.ts';
import { walkDependencies } from './dependency-walk.ts';
import { terminalError } from './errors.ts';
import { childKey, childName, parentAnnotation, parentId, parentIdLabel, parentMark } from './identity.ts';
import { ordersByDependency } from './in-order.ts';
import type { Desired, GroupKind, InventoryEntry, Live, WorkloadView } from './port.ts';

/** What an author's function answered, if it is a list of children. */
export function checkedChildren(what: string, answer: unknown): readonly Desired[] {
  const found = answer === null ? 'null' : typeof answer;
  if (!Array.isArray(answer)) throw terminalError('InvalidChild', `${what} answered ${found}; expected a list of children`);
  for (const child of answer as readonly (Partial<Desired> | null | undefined)[]) {
    if (typeof child?.ref !== 'object' || child.ref === null)
      throw terminalError('InvalidChild', `${what} answered something without a ref among the children; make each with desiredChild`);
  }
  return answer as readonly Desired[];
}

/**
 * Before anything is recorded of them: what could never be there could never be found to be gone either, and would keep the
 * workload from its end.
 */
export function checkIdentities(children: readonly Desired[], kinds: readonly GroupKind[]): void {
  for (const child of children) {
    const { group, kind, namespace, name } = child.ref;
    if (!kinds.some((known) => known.kind === kind && known.group === group))
      throw terminalError('InvalidChild', `${kind}.${group} ${name} is of a kind that this workload does not declare; name it in children`);
    const problem = nameProblem(name) ?? (namespace === '' ? undefined : nameProblem(namespace));
    if (problem !== undefined) throw terminalError('InvalidChild', `${kind} ${namespace}/${name}: its name or namespace ${problem}`);
    const order = child.options?.deletionOrder;
    if (order !== undefined && !Number.isSafeInteger(order))
      throw terminalError('InvalidChild', `${kind} ${namespace}/${name}: deletionOrder must be a whole number, found ${String(order)}`);
  }
}

/** Puts the parent's marks on children, and checks that each is there once and that `dependsOn` leads somewhere. */
export function prepareChildren(view: WorkloadView, children: readonly Desired[]): readonly Desired[] {
  const keys = new Set<string>();
  const names = new Map<string, Desired>();
  for (const child of children) {
    const key = childKey(child.ref);
    const name = childName(child);
    if (keys.has(key))
      throw terminalError(
        'DuplicateChild',
        `two children are both ${child.ref.kind} ${child.ref.namespace}/${child.ref.name}; give one of them another name`,
      );
    if (names.has(name)) throw terminalError('DuplicateChild', `two children are named ${name}; names are unique in a workload`);
    keys.add(key);
    names.set(name, child);
  }
  for (const child of children) {
    for (const other of child.dependsOn ?? []) {
      if (!names.has(other))
        throw terminalError('UnknownDependency', `${childName(child)} depends on ${other}, which is not a child of this workload`);
    }
  }
  const order = dependencyOrder(children);
  const mark = parentMark(view);
  const id = parentId(view.key);
  return children.map((child, index) =>
    Object.freeze({
      ...child,
      ref: Object.freeze({ ...child.ref }),
      body: freezeBody(child),
      labels: Object.freeze({ ...child.labels, [parentIdLabel]: id }),
      annotations: Object.freeze({ ...child.annotations, [parentAnnotation]: mark }),
      order: child.options?.deletionOrder ?? order?.get(childName(child)) ?? index,
    }),
  );
}

/** Plain data, frozen, so that a digest can be remembered for it. */
function freezeBody(child: Desired): unknown {
  try {
    return freezeSpec(child.body);
  } catch (error) {
    throw terminalError('InvalidChild', `${childName(child)}: ${thrownText(error)}`, error);
  }
}

/** Levels of `dependsOn`; `undefined` when no child depends on another, so that the given order counts. Throws for a cycle. */
function dependencyOrder(children: readonly Desired[]): Map<string, number> | undefined {
  if (!ordersByDependency(children)) return undefined;
  const byName = new Map(children.map((child) => [childName(child), child.dependsOn ?? []]));
  const dependenciesOf = (name: string): readonly string[] => byName.get(name) ?? [];
  const levels = new Map<string, number>();
  for (const name of walkDependencies(byName.keys(), dependenciesOf, refuseCircle)) {
    let level = 0;
    for (const other of dependenciesOf(name)) level = Math.max(level, (levels.get(other) ?? 0) + 1);
    levels.set(name, level);
  }
  return levels;
}

function refuseCircle(circle: readonly string[]): never {
  throw terminalError('DependencyCycle', `children depend on each other in a circle: ${circle.join(' → ')}`);
}

const digests = new WeakMap<Desired, string>();

/** Digest of what is desired, without our marks and without what only orders. Remembered per frozen child. */
export function desiredDigest(child: Desired): string {
  const known = digests.get(child);
  if (known !== undefined) return known;
  const { [parentIdLabel]: _id, ...labels } = child.labels;
  const { [parentAnnotation]: _mark, ...annotations } = child.annotations;
  const text = digest([digest(labels), digest(annotations), digest(child.body)]);
  if (Object.isFrozen(child)) digests.set(child, text);
  return text;
}

/** Whether a child's desired state is another than the one that was applied last. A new digest scheme alone is no change. */
export function desiredChanged(entry: InventoryEntry | undefined, next: string): boolean {
  if (entry === undefined || entry.digest === '') return true;
  return comparableDigests(entry.digest, next) && entry.digest !== next;
}

/** Whether a live object is as desired. */
export function needsUpdate(
  diff: (desired: Desired, live: Live, entry: InventoryEntry | undefined) => 'same' | 'differs',
  child: Desired,
  live: Live,
  entry?: InventoryEntry,
): boolean {
  return diff(child, live, entry) === 'differs';
}

/** Whether all are as desired; a missing one is not. */
export function areDesired(
  diff: (desired: Desired, live: Live, entry: InventoryEntry | undefined) => 'same' | 'differs',
  pairs: readonly { readonly child: Desired; readonly live: Live | undefined }[],
): boolean {
  return pairs.every(({ child, live }) => live !== undefined && !needsUpdate(diff, child, live));
}
