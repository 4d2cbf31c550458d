import type { Resource, ResourcePhase } from '../resource/index.ts';
import { Bytes, invalid } from '../resource/index.ts';
import type { Bookmark, State, TeardownOptions, WatchKindOptions } from '../state/index.ts';
import { unsupported } from '../state/index.ts';
import type { OwnedPointerRequest, ResourceCodec, WireResource, WireWatchOptions } from '../wire/index.ts';
import { actorKey, queryFromWire, revisionKey, saysEmptyMessage, stateService } from '../wire/index.ts';
import type { HandlerContext } from './context.ts';
import { endOf, streaming, unary, unaryFramed } from './context.ts';
import { itemsFrame } from './frame-cache.ts';
import type { ServerMethod } from './grpc/methods.ts';
import type { ServerCall, Trailers } from './grpc/server-call.ts';
import { relay } from './relay.ts';

/** Largest resource that can be sent, bytes: Go clients refuse messages of more than 4 MiB. */
const largestMessage = 3_900_000;
/** Resources of a list that are sent before other calls get their turn. */
const itemsPerBreath = 256;

/** The service that COSI clients speak. */
export function stateMethods(context: HandlerContext): readonly ServerMethod[] {
  const { state, codec } = context;
  const answer = (resource: Resource): Buffer => itemsFrame([codec.encode(resource)]);
  const written = (resource: Resource): { readonly framed: Buffer; readonly trailers: Trailers } => ({
    framed: answer(resource),
    trailers: state.capabilities.globalRevision ? { [revisionKey]: resource.metadata.version } : {},
  });
  return [
    unaryFramed(context, stateService.get, 'get', async (request, _call, part) => ({
      framed: answer(await state.get(pointerOf(request), part)),
    })),
    unaryFramed(context, stateService.create, 'create', async ({ resource, options }, call, part) =>
      written(await state.create(incoming(codec, resource), { owner: options.owner, actor: actorOf(call), ...part })),
    ),
    unaryFramed(context, stateService.update, 'update', async ({ newResource, options }, call, part) => {
      const expectedPhase = options.expectedPhase === undefined ? 'any' : phaseOf(options.expectedPhase);
      const resource = incoming(codec, newResource);
      if (newResource?.spec?.protoSpec.length === 0) await refuseLostForm(state, codec, resource, newResource.spec.yamlSpec);
      return written(await state.update(resource, { owner: options.owner, actor: actorOf(call), expectedPhase, ...part }));
    }),
    unaryFramed(context, stateService.destroy, 'destroy', async (request, _call, part) => {
      await state.destroy(pointerOf(request), { owner: request.options.owner, ...part });
      // Others may have written since: it is at or after the destroy.
      const revision = context.revision?.();
      return { framed: itemsFrame([]), ...(revision !== undefined && { trailers: { [revisionKey]: String(revision) } }) };
    }),
    unary(context, stateService.teardown, 'teardown', async (request, _call, part) => ({
      destroyReady: await state.teardown(pointerOf(request), { ...ownOptions(request), ...part }),
    })),
    unary(context, stateService.teardownAndDestroy, 'teardownAndDestroy', async (request, call, part) => {
      await state.teardownAndDestroy(pointerOf(request), { ...ownOptions(request), signal: call.signal, ...part });
      return {};
    }),
    streaming(context, stateService.list, 'list', false, async ({ namespace, type, options }, call, part) => {
      const { items, revision } = await state.list({ namespace, type }, { ...queryFromWire(options), ...part });
      let count = 0;
      for (const item of items) {
        if (call.cancelled) return undefined;
        call.send(answer(item));
        if (call.blocked) await new Promise<void>((resolve) => call.whenUnblocked(resolve));
        if (++count % itemsPerBreath === 0) await context.environment.breathe();
      }
      return revision === undefined ? undefined : { [revisionKey]: String(revision) };
    }),
    streaming(context, stateService.watch, 'watch', true, async ({ namespace, type, id, options, apiVersion }, call, part) => {
      using end = endOf(call, context);
      const kind = { namespace, type };
      const { aggregated } = options;
      if (id !== undefined) {
        if (options.bootstrapContents || options.labelQuery.length > 0 || options.idQuery !== undefined)
          throw unsupported('a watch of one resource takes neither bootstrap_contents nor queries');
        const watch = await state.watch({ ...kind, id }, { ...placeOf(options), signal: end.signal, ...part });
        return await relay(context, call, watch, kind, { aggregated, apiVersion, noops: true });
      }
      const watch = await state.watchKindAggregated(kind, { ...kindOptions(options), signal: end.signal, ...part });
      // A foreign client gets a bare bookmark only if it showed that it knows them.
      const noops = options.bootstrapBookmark || options.startFromBookmark !== undefined;
      return await relay(context, call, watch, kind, { aggregated, apiVersion, noops, caughtUpFrom: caughtUpFrom(options) });
    }),
  ];
}

/** Options of a watch over kinds, from the wire. */
export function kindOptions(options: WireWatchOptions): WatchKindOptions {
  return {
    ...placeOf(options),
    ...queryFromWire(options),
    ...(options.bootstrapContents && { bootstrapContents: true }),
    ...(options.bootstrapBookmark && { bootstrapBookmark: true }),
  };
}

function ownOptions({ options: { owner, uid } }: OwnedPointerRequest): TeardownOptions {
  return { owner, ...(uid !== undefined && { uid }) };
}

/** The place from which a client wants to be told that it has caught up. */
export function caughtUpFrom({ caughtUp, startFromBookmark }: WireWatchOptions): Bookmark | undefined {
  return caughtUp && startFromBookmark !== undefined ? Bytes.from(startFromBookmark) : undefined;
}

function placeOf(options: WireWatchOptions): Pick<WatchKindOptions, 'tailEvents' | 'startFromBookmark' | 'strict'> {
  return {
    ...(options.tailEvents !== 0 && { tailEvents: options.tailEvents }),
    // An empty one is no place either: to leave it out would be to begin elsewhere than the client asked.
    ...(options.startFromBookmark !== undefined && { startFromBookmark: Bytes.from(options.startFromBookmark) }),
    ...(options.strict && { strict: true }),
  };
}

function pointerOf({ namespace, type, id }: { readonly namespace: string; readonly type: string; readonly id: string }) {
  return { namespace, type, id };
}

/** A resource from a request. Invalid for one that could be stored, but never be sent to anybody. */
function incoming(codec: ResourceCodec, wire: WireResource | undefined): Resource {
  const resource = codec.fromWire(wire);
  // Most are far from the limit; those that could come near it, in whatever form they are sent, are measured.
  const size = roughSize(wire) > largestMessage / 64 ? codec.encode(resource).length : 0;
  if (size > largestMessage)
    throw invalid([{ path: '', message: `${size} bytes as a message, at most ${largestMessage} can be sent` }], resource.metadata);
  return resource;
}

function roughSize(wire: WireResource | undefined): number {
  const { metadata, spec } = wire ?? {};
  let size = (spec?.protoSpec.length ?? 0) + (spec?.yamlSpec.length ?? 0);
  if (metadata === undefined) return size;
  for (const finalizer of metadata.finalizers) size += finalizer.length;
  for (const pairs of [metadata.labels, metadata.annotations])
    for (const [key, value] of Object.entries(pairs)) size += key.length + value.length;
  return size;
}

/**
 * Readers in other languages take a missing protobuf form for an empty spec, so a write that would lose it is refused, unless
 * its text says just that.
 * The version that was looked at is the precondition of the write, so nothing comes between.
 */
async function refuseLostForm(state: State, codec: ResourceCodec, resource: Resource, yaml: string): Promise<void> {
  if (codec.makesProtobuf(resource)) return;
  const stored = await state.get(resource.metadata).catch(() => undefined);
  if (stored === undefined || stored.metadata.version !== resource.metadata.version || !codec.hasProtobuf(stored)) return;
  // The text is read last: that costs more than all the rest, and few writes come so far.
  if (saysEmptyMessage(yaml)) return;
  throw invalid(
    [{ path: 'spec', message: 'the stored spec has a protobuf form, and this write would lose it: write it with the codec of its type' }],
    resource.metadata,
  );
}

/** Who writes, if the call says so. */
function actorOf(call: ServerCall): string {
  return Buffer.from(call.header(actorKey) ?? '', 'base64').toString();
}

function phaseOf(text: string): ResourcePhase {
  if (text === 'running' || text === 'tearingDown') return text;
  throw invalid([{ path: 'expected_phase', message: `expected running or tearingDown, found ${JSON.stringify(text)}` }]);
}
