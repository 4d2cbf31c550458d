import type { ServiceError } from '@grpc/grpc-js';
import type { Environment } from '../../environment/index.ts';
import type { Kind, Pointer, ResourceQuery } from '../../resource/index.ts';
import { compileQuery } from '../../resource/index.ts';
import type { CallOptions, Capabilities, EventSource, WatchKindOptions } from '../../state/index.ts';
import { checkWatchOptions, closed, unsupported } from '../../state/index.ts';
import type { ResourceCodec, WatchResponse, WireWatchOptions } from '../../wire/index.ts';
import { controlService, decodeEvent, stateService } from '../../wire/index.ts';
import type { Calls } from './calls.ts';
import { openEachKind } from './merged-source.ts';
import { RemoteSource } from './remote-source.ts';
import { watchOptions } from './watch-options.ts';

export interface WatchSourcesOptions {
  readonly calls: Calls;
  readonly environment: Environment;
  readonly codec: ResourceCodec;
  /** The server has our control service. */
  readonly ours: boolean;
  /** What the store behind it can: a server of ours may stand before one of others. */
  readonly capabilities: Pick<Capabilities, 'globalRevision' | 'multiKindWatch'>;
}

/** Whether a watch has a place to go on from at its start: the bookmark that is asked for, that of the present value, or none. */
type FirstPlace = 'asked' | 'initial' | 'none';

/** Establishes the watches of one connection, and ends them with it. What a watch is of is checked before. */
export class WatchSources {
  readonly #options: WatchSourcesOptions;
  /** Those that stand, or are being established. */
  readonly #open = new Set<RemoteSource>();

  constructor(options: WatchSourcesOptions) {
    this.#options = options;
  }

  one({ namespace, type, id }: Pointer, options: WatchKindOptions): Promise<EventSource> {
    return this.#source(options, 'initial', (wire) =>
      this.#options.calls.stream(stateService.watch, { namespace, type, id, options: wire, apiVersion: 1 }, options.span),
    );
  }

  kind({ namespace, type }: Kind, options: WatchKindOptions): Promise<EventSource> {
    return this.#source(options, 'asked', (wire) =>
      this.#options.calls.stream(stateService.watch, { namespace, type, options: wire, apiVersion: 1 }, options.span),
    );
  }

  kinds(kinds: readonly Kind[], options: WatchKindOptions): Promise<EventSource> {
    checkWatchOptions(options);
    if (!this.#options.ours) return this.#eachKind(kinds, options);
    const kind = kinds.map(({ namespace, type }) => ({ namespace, type }));
    // Without an order over kinds there are no places either.
    return this.#source(options, this.#options.capabilities.multiKindWatch ? 'asked' : 'none', (wire) =>
      this.#options.calls.stream(controlService.watchKinds, { kind, options: wire }, options.span),
    );
  }

  /** One stream per kind, for a server that has no order over kinds. */
  async #eachKind(kinds: readonly Kind[], options: WatchKindOptions): Promise<EventSource> {
    if (options.startFromBookmark !== undefined || options.tailEvents !== undefined || options.bootstrapBookmark === true)
      throw unsupported('this server has no order over several kinds, so no bookmark and no tail of them; watch each kind');
    return openEachKind(kinds, options.bootstrapContents === true, (kind) => this.kind(kind, options));
  }

  namespaces(type: string, options: CallOptions): Promise<EventSource> {
    return this.#source(options, 'none', () => this.#options.calls.stream(controlService.watchNamespaces, { type }, options.span));
  }

  close(): void {
    for (const source of [...this.#open]) source.close(closed('the connection was closed'));
  }

  async #source(
    options: WatchKindOptions,
    place: FirstPlace,
    open: (wire: WireWatchOptions) => ReturnType<Calls['stream']>,
  ): Promise<EventSource> {
    const { calls, capabilities, codec, environment, ours } = this.#options;
    checkWatchOptions(options);
    checkQuery(options);
    // A bookmark at the start makes every watch of a kind resumable from its first moment.
    const known = options.bootstrapBookmark === true || options.startFromBookmark !== undefined || options.bootstrapContents === true;
    const ask = place === 'asked' && !known;
    const comes = ask || (place === 'initial' && !known && options.tailEvents === undefined);
    const base = watchOptions(options);
    const source: RemoteSource = new RemoteSource({
      environment,
      hideFirstNoop: ask,
      // A store of ours gives it at once.
      awaitBookmark: capabilities.globalRevision && comes,
      from: options.startFromBookmark,
      repeatable: options.bootstrapContents === true,
      tellsCaughtUp: place === 'asked' && ours,
      onEnd: () => this.#open.delete(source),
      open: (bookmark) => {
        const wire: WireWatchOptions =
          bookmark === undefined
            ? { ...base, bootstrapBookmark: base.bootstrapBookmark || ask }
            : {
                ...base,
                bootstrapContents: false,
                bootstrapBookmark: false,
                tailEvents: 0,
                startFromBookmark: bookmark.toUint8Array(),
                caughtUp: place === 'asked',
              };
        return open(wire) as never;
      },
      decode: (response: WatchResponse) =>
        response.event.map((event) => decodeEvent(event, codec, options.raw)).filter((event) => event !== undefined),
      readError: (error: ServiceError) => calls.error(error, { call: 'watch' }),
    });
    this.#open.add(source);
    await source.start(options.signal);
    return source;
  }
}

/** Throws Invalid. What has no form on the wire cannot be sent, and servers of others check less of what they are asked; some end over it. */
export function checkQuery(query: ResourceQuery): void {
  compileQuery(query);
}
