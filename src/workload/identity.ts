import { digest } from '../resource/index.ts';
import type { ChildRef, Desired, GroupKind, InventoryEntry, Live, WorkloadKey, WorkloadView } from './port.ts';

/** Label on every child: a hash of its parent's identity. */
export const parentIdLabel = 'steadystate.dev/parent-id';
/** Annotation on every child: its parent's identity and uid. */
export const parentAnnotation = 'steadystate.dev/parent';
export const pausedAnnotation = 'steadystate.dev/paused';
export const reconcileAtAnnotation = 'steadystate.dev/reconcile-at';
export const allowEmptyAnnotation = 'steadystate.dev/allow-empty';
/** A finalizer on the parent: its children stay when it goes. */
export const orphanFinalizer = 'orphan';

const childKeys = new WeakMap<object, string>();

/** Text that names a child, for maps. Never the version. Remembered per frozen value. */
export function childKey(ref: Pick<ChildRef, 'group' | 'kind' | 'namespace' | 'name'>): string {
  const known = childKeys.get(ref);
  if (known !== undefined) return known;
  const key = `${ref.group}\u0000${ref.kind}\u0000${ref.namespace}\u0000${ref.name}`;
  if (Object.isFrozen(ref)) childKeys.set(ref, key);
  return key;
}

export function workloadKeyText(key: WorkloadKey): string {
  return JSON.stringify([key.group, key.kind, key.namespace, key.name]);
}

export function sameKind(left: GroupKind, right: GroupKind): boolean {
  return left.group === right.group && left.kind === right.kind;
}

/** `kind/name`, for messages and `dependsOn`. */
export function childName(child: Pick<Desired, 'name' | 'ref'>): string {
  return child.name ?? `${child.ref.kind}/${child.ref.name}`;
}

/** The value of the parent-id label: 32 characters that a label may hold. */
export function parentId(key: WorkloadKey): string {
  const { group, kind, namespace, name } = key;
  return digest([group, kind, namespace, name])
    .slice(2)
    .replace(/[^A-Za-z0-9]/g, '0')
    .slice(0, 32);
}

export interface ParentMark extends WorkloadKey {
  readonly uid: string;
}

export function parentMark(view: WorkloadView): string {
  const { group, kind, namespace, name } = view.key;
  return JSON.stringify({ group, kind, namespace, name, uid: view.uid });
}

const marks = new WeakMap<object, ParentMark | undefined>();

/** The parent that a child bears the mark of; `undefined`: none, or one that cannot be read. Remembered per frozen annotations. */
export function readParent({ annotations }: { readonly annotations: Readonly<Record<string, string>> }): ParentMark | undefined {
  if (marks.has(annotations)) return marks.get(annotations);
  const mark = parseMark(annotations);
  if (Object.isFrozen(annotations)) marks.set(annotations, mark);
  return mark;
}

function parseMark(annotations: Readonly<Record<string, string>>): ParentMark | undefined {
  const text = Object.hasOwn(annotations, parentAnnotation) ? annotations[parentAnnotation] : undefined;
  if (text === undefined) return undefined;
  try {
    const { group, kind, namespace, name, uid } = JSON.parse(text) as Record<string, unknown>;
    const texts = [group, kind, namespace, name, uid];
    return texts.every((part) => typeof part === 'string') ? ({ group, kind, namespace, name, uid } as ParentMark) : undefined;
  } catch {
    return undefined;
  }
}

export function isParent(mark: ParentMark | undefined, key: WorkloadKey): boolean {
  return mark !== undefined && sameKind(mark, key) && mark.namespace === key.namespace && mark.name === key.name;
}

/** Whether a live child bears this workload's mark. Its uid may be an earlier one of the same identity, as after an import. */
export function bearsMark(live: Pick<Live, 'annotations'>, key: WorkloadKey): boolean {
  return isParent(readParent(live), key);
}

export function refOf(entry: InventoryEntry): ChildRef {
  const { group, version, kind, namespace, name } = entry;
  return { group, version, kind, namespace, name };
}
