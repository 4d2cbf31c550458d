import { comparableDigests, digest } from '../resource/index.ts';
import { terminalError } from './errors.ts';
import { childKey, childName, isParent, parentAnnotation, parentId, parentIdLabel, parentMark, readParent } from './identity.ts';
import type { Desired, InventoryEntry, Live, WorkloadView } from './port.ts';

/** How many children are handled at once when `dependsOn` orders them. */
export const childConcurrency = 8;

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
      labels: Object.freeze({ ...child.labels, [parentIdLabel]: id }),
      annotations: Object.freeze({ ...child.annotations, [parentAnnotation]: mark }),
      options: { ...child.options, deletionOrder: child.options?.deletionOrder ?? order?.get(childName(child)) ?? index },
    }),
  );
}

/** Levels of `dependsOn`; `undefined` when no child depends on another, so that the given order counts. Throws for a cycle. */
function dependencyOrder(children: readonly Desired[]): Map<string, number> | undefined {
  if (!ordersByDependency(children)) return undefined;
  const byName = new Map(children.map((child) => [childName(child), child]));
  const levels = new Map<string, number>();
  const visit = (name: string, path: readonly string[]): number => {
    const known = levels.get(name);
    if (known !== undefined) return known;
    if (path.includes(name))
      throw terminalError(
        'DependencyCycle',
        `children depend on each other in a circle: ${[...path.slice(path.indexOf(name)), name].join(' → ')}`,
      );
    const level = Math.max(-1, ...(byName.get(name)?.dependsOn ?? []).map((other) => visit(other, [...path, name]))) + 1;
    levels.set(name, level);
    return level;
  };
  for (const name of byName.keys()) visit(name, []);
  return levels;
}

export function ordersByDependency(children: readonly Desired[]): boolean {
  return children.some((child) => child.dependsOn !== undefined);
}

/** Digest of what is desired, without our marks and without what only orders. */
export function desiredDigest(child: Desired): string {
  const { [parentIdLabel]: _id, ...labels } = child.labels;
  const { [parentAnnotation]: _mark, ...annotations } = child.annotations;
  return digest([digest(labels), digest(annotations), digest(child.body)]);
}

/** Whether a child's desired state is another than the one that was applied last. A new digest scheme alone is no change. */
export function desiredChanged(entry: InventoryEntry | undefined, next: string): boolean {
  if (entry === undefined || entry.digest === '') return true;
  return comparableDigests(entry.digest, next) && entry.digest !== next;
}

/** What stands in the way of taking a live object as this child; `undefined`: nothing. */
export function adoptionProblem(view: WorkloadView, child: Desired, live: Live, fieldManager: string): string | undefined {
  const parent = readParent(live);
  const name = `${child.ref.kind} ${child.ref.namespace}/${child.ref.name}`;
  if (isParent(parent, view.key)) return undefined;
  if (parent !== undefined)
    return `${name} is a child of ${parent.kind} ${parent.namespace}/${parent.name}; remove it there, or choose another name here`;
  if (live.owner !== '' && live.owner !== fieldManager) return `${name} is owned by ${live.owner}; it is not taken over`;
  if (child.options?.adopt === 'never') return `${name} exists already and was not made by this workload; delete it, or allow adoption`;
  return undefined;
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
