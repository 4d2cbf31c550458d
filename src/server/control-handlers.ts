import type { Pointer, Readiness, Resource, ResourceInput, SteadystateError } from '../resource/index.ts';
import { findError, namespaceDefinition } from '../resource/index.ts';
import type { State } from '../state/index.ts';
import { unsupported } from '../state/index.ts';
import type {
  ControllerNote,
  DestroyIncarnationRequest,
  GetRequest,
  InfoResponse,
  NotesResponse,
  ReadinessResponse,
  ReleaseFinalizerRequest,
  ReleaseFinalizerResponse,
  ValidateRequest,
  ValidateResponse,
  WatchKindsRequest,
  WatchNamespacesRequest,
  WireProblem,
} from '../wire/index.ts';
import type { HandlerContext } from './handlers.ts';
import { kindOptions, relay, streaming, unary } from './handlers.ts';

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
  /** Takes a finalizer away by hand, through a state with the caller's rights; answers where that is on record. Absent: Unsupported. */
  releaseFinalizer?(request: ReleaseFinalizerRequest, state: State): Promise<ReleaseFinalizerResponse>;
}

export function controlHandlers(context: HandlerContext, provider: ControlProvider) {
  const { state, codec } = context;
  return {
    info: unary<object, InfoResponse>(context, 'control', async () => ({
      version: provider.version,
      pid: provider.pid,
      storeId: provider.storeId ?? '',
      store: provider.store,
      revision: provider.revision?.() ?? 0,
      capabilities: Object.entries(state.capabilities)
        .filter(([, has]) => has)
        .map(([name]) => name),
    })),
    validate: unary<ValidateRequest, ValidateResponse>(context, 'control', async ({ resource }) => {
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
    readiness: unary<GetRequest, ReadinessResponse>(context, 'control', async ({ namespace, type, id }) => {
      const found = await provider.readiness?.({ namespace, type, id });
      if (found === undefined) return { status: '', reason: '', message: '', version: '', known: '' };
      const { status, reason, message } = found.readiness;
      return { status, reason, message, version: found.version, known: 'yes' };
    }),
    notes: unary<GetRequest, NotesResponse>(context, 'control', async ({ namespace, type, id }) => ({
      note: provider.notes?.({ namespace, type, id }) ?? [],
    })),
    graph: unary<object, { readonly json: string }>(context, 'control', async () => ({ json: provider.graph?.() ?? '{"controllers":[]}' })),
    destroyIncarnation: unary<DestroyIncarnationRequest, object>(
      context,
      'destroy',
      async ({ namespace, type, id, owner, uid }, _signal, part) => {
        await state.destroy({ namespace, type, id }, { owner, ...(uid !== '' && { uid }), ...part });
        return {};
      },
    ),
    releaseFinalizer: unary<ReleaseFinalizerRequest, ReleaseFinalizerResponse>(context, 'update', async (request) => {
      if (provider.releaseFinalizer === undefined) throw unsupported('the program behind this server does not release finalizers');
      return provider.releaseFinalizer(request, state);
    }),
    watchKinds: streaming<WatchKindsRequest>(context, 'watch', async (call, signal, part) => {
      const { kind, options } = call.request;
      const watch = await state.watchKinds(kind, { ...kindOptions(options), signal, ...part });
      return relay(context, call, watch, kind[0] ?? { namespace: '', type: '' }, { aggregated: true, apiVersion: 1, noops: true });
    }),
    watchNamespaces: streaming<WatchNamespacesRequest>(context, 'watch', async (call, signal, part) => {
      if (state.watchNamespaces === undefined) throw unsupported('the store behind this server cannot tell in which namespaces a type is');
      const watch = await state.watchNamespaces(call.request.type, { signal, ...part });
      return relay(context, call, watch, namespaceDefinition.kind(), { aggregated: true, apiVersion: 1, noops: false });
    }),
  };
}

function problemsOf(index: number, error: unknown): readonly WireProblem[] {
  const known: SteadystateError | undefined = findError(error);
  if (known === undefined) throw error;
  if (known.issues.length === 0) return [{ index, path: '', message: known.message, code: known.code }];
  return known.issues.map(({ path, message }) => ({ index, path, message, code: known.code }));
}
