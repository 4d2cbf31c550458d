import type { Pointer, Resource } from '../../resource/index.ts';
import { isNotFoundError, thisIncarnation } from '../../resource/index.ts';
import type { ControllerContext } from '../../runtime/index.ts';
import { bearsMark, childKey, parentId, parentIdLabel } from '../identity.ts';
import type { GroupKind, Live, StorePort, WorkloadKey } from '../port.ts';
import { readCompanion } from './companion.ts';

/**
 * Children and companion of a workload that is gone: a create can land after the teardown, and a finalizer can be released
 * by force. Each is removed by uid, after the workload was looked for past every cache; a child that was to live on loses
 * its marks. What still has finalizers is looked at again when they go.
 */
export async function removeOrphans(
  context: ControllerContext,
  port: StorePort,
  key: WorkloadKey,
  childKinds: readonly GroupKind[],
  companion: Pointer,
): Promise<void> {
  const call = { signal: context.signal, fresh: true };
  if ((await port.workload(key, call)) !== undefined) return;
  const stored = await find(context, companion);
  const entries = new Map((readCompanion(stored)?.children ?? []).map((entry) => [childKey(entry), entry]));
  const orphanAll = readCompanion(stored)?.orphan === true;
  let left = false;
  for (const kind of childKinds) {
    for (const live of await port.list(kind, { ...call, labels: { [parentIdLabel]: parentId(key) } })) {
      if (!bearsMark(live, key)) continue;
      // A copy that somebody made of a child bears its marks too. What we made has our name; what we took over is on record.
      if (live.owner !== context.name && !entries.has(childKey(live.ref))) continue;
      if (orphanAll || entries.get(childKey(live.ref))?.onDelete === 'orphan')
        await port.release(live.ref, live.uid, { ...call, owner: key });
      else left = !(await remove(port, live, call)) || left;
    }
  }
  // The companion tells which children were to live on, so it goes last.
  if (left || stored === undefined) return;
  try {
    await context.destroy(companion, { owner: stored.metadata.owner, ...thisIncarnation(stored.metadata) });
  } catch (error) {
    if (!isNotFoundError(error)) throw error;
  }
}

/** Whether it is gone. */
async function remove(port: StorePort, live: Live, call: { readonly signal: AbortSignal }): Promise<boolean> {
  const options = { ...call, propagation: 'Foreground' } as const;
  if ((await port.remove(live.ref, live.uid, options)) === 'gone') return true;
  return live.finalizers.length === 0 && (await port.remove(live.ref, live.uid, options)) === 'gone';
}

async function find(context: ControllerContext, pointer: Pointer): Promise<Resource | undefined> {
  try {
    return await context.uncached.get(pointer);
  } catch (error) {
    if (isNotFoundError(error)) return undefined;
    throw error;
  }
}
