import type { Pointer, Readiness, Resource, ResourceInput, SteadystateError } from '../resource/index.ts';

import { checkPointer, findError, namespaceDefinition } from '../resource/index.ts';
import type { State, StoreAdmin } from '../state/index.ts';
import { unsupported } from '../state/index.ts';
import type { ControllerNote, ReleaseFinalizerRequest, ReleaseFinalizerResponse, WireProblem } from '../wire/index.ts';
import { controlService } from '../wire/index.ts';
import type { HandlerContext } from './context.ts';
import { endOf, streaming, unary } from './context.ts';
import type { ServerMethod } from './grpc/methods.ts';
import { relay } from './relay.ts';
import { caughtUpFrom, kindOptions } from './state-methods.ts';
import { storeMethods } from './store-methods.ts';

/** What the program behind the server tells of itself; each is optional, and absent ones answer what is true without. */
export interface ControlProvider {
  readonly version: string;
  readonly pid: number;
  readonly storeId?: string;
  /** The store's URL, for people. */
  readonly store: string;
  revision?(): number;
  /** The resource as it would be stored; throws Invalid. */
  validate?(resource: ResourceInput | Resource): Resource;
  /** `undefined`: its type cannot tell. */
  readiness?(pointer: Pointer): Promise<{ readonly readiness: Readiness; readonly version: string } | undefined>;
  /** What the controllers say of a resource. */
  notes?(pointer: Pointer): readonly ControllerNote[];
  /** JSON of the controllers' graph. */
  graph?(): string;
  /** Looks after the store's file; absent: there is none. */
  readonly admin?: StoreAdmin | undefined;
  /** Takes a finalizer away by hand, through a state with the caller's rights; answers where that is on record. Absent: Unsupported. */
  releaseFinalizer?(request: ReleaseFinalizerRequest, state: State): Promise<ReleaseFinalizerResponse>;
}

/** Our own service beside it. */
export function controlMethods(context: HandlerContext, provider: ControlProvider): readonly ServerMethod[] {
  const { state, codec } = context;
  return [
    unary(context, controlService.info, 'control', async () => ({
      version: provider.version,
      pid: provider.pid,
      storeId: provider.storeId ?? '',
      store: provider.store,
      revision: provider.revision?.() ?? 0,
      capabilities: Object.entries(state.capabilities)
        .filter(([, has]) => has)
        .map(([name]) => name),
    })),
    unary(context, controlService.validate, 'control', async ({ resource }) => {
      const problem: WireProblem[] = [];
      const valid: Resource[] = [];
      resource.forEach((wire, index) => {
        try {
          const decoded = codec.fromWire(wire);
          valid.push(provider.validate?.(decoded) ?? decoded);
        } catch (error) {
          problem.push(...problemsOf(index, error));
        }
      });
      return { problem, resource: problem.length > 0 ? [] : valid.map((item) => codec.toWire(item)) };
    }),
    unary(context, controlService.readiness, 'control', async ({ namespace, type, id }) => {
      checkPointer({ namespace, type, id });
      const found = await provider.readiness?.({ namespace, type, id });
      if (found === undefined) return { status: '', reason: '', message: '', version: '', known: '' };
      const { status, reason, message } = found.readiness;
      return { status, reason, message, version: found.version, known: 'yes' };
    }),
    unary(context, controlService.notes, 'control', async ({ namespace, type, id }) => {
      checkPointer({ namespace, type, id });
      return { note: provider.notes?.({ namespace, type, id }) ?? [] };
    }),
    unary(context, controlService.finalizers, 'get', async ({ namespace, type, id }, _call, part) => {
      if (state.finalizerNotes === undefined) throw unsupported('the store behind this server remembers nothing of finalizers');
      return { note: await state.finalizerNotes({ namespace, type, id }, part) };
    }),
    unary(context, controlService.waitForRevision, 'get', async ({ revision }, call, part) => {
      // Without it reads always see what was acknowledged.
      await state.waitForRevision?.(revision, { signal: call.signal, ...part });
      return {};
    }),
    unary(context, controlService.graph, 'control', async () => ({ json: provider.graph?.() ?? '{"controllers":[]}' })),
    unary(context, controlService.destroyIncarnation, 'destroy', async ({ namespace, type, id, owner, uid }, _call, part) => {
      // An empty one is none that a resource has: it must not become a destroy of whichever is there.
      await state.destroy({ namespace, type, id }, { owner, uid, ...part });
      return {};
    }),
    unary(context, controlService.fencedWrite, 'update', async () => {
      throw unsupported('the store behind this server does not fence writes');
    }),
    unary(context, controlService.releaseFinalizer, 'update', async (request) => {
      if (provider.releaseFinalizer === undefined) throw unsupported('the program behind this server does not release finalizers');
      return provider.releaseFinalizer(request, state);
    }),
    streaming(context, controlService.watchKinds, 'watch', true, async ({ kind, options }, call, part) => {
      using end = endOf(call, context);
      const watch = await state.watchKinds(kind, { ...kindOptions(options), signal: end.signal, ...part });
      return await relay(context, call, watch, kind[0] ?? { namespace: '', type: '' }, {
        aggregated: true,
        apiVersion: 1,
        noops: true,
        caughtUpFrom: caughtUpFrom(options),
      });
    }),
    streaming(context, controlService.watchNamespaces, 'watch', true, async ({ type }, call, part) => {
      if (state.watchNamespaces === undefined) throw unsupported('the store behind this server cannot tell in which namespaces a type is');
      using end = endOf(call, context);
      const watch = await state.watchNamespaces(type, { signal: end.signal, ...part });
      return await relay(context, call, watch, namespaceDefinition.kind(), { aggregated: true, apiVersion: 1, noops: false });
    }),
    ...storeMethods(context, provider.admin),
  ];
}

function problemsOf(index: number, error: unknown): readonly WireProblem[] {
  const known: SteadystateError | undefined = findError(error);
  if (known === undefined) throw error;
  if (known.issues.length === 0) return [{ index, path: '', message: known.message, code: known.code }];
  return known.issues.map(({ path, message }) => ({ index, path, message, code: known.code }));
}
