import type { Pointer, Resource } from '../../resource/index.ts';
import { isInvalidBookmarkError } from '../../resource/index.ts';
import type { StateEvent } from '../../state/index.ts';
import type { Fault } from './faulty-stores.ts';
import { eachEvent, over, withEvents } from './faulty-stores.ts';

const isChange = (event: StateEvent): boolean => event.type === 'created' || event.type === 'updated' || event.type === 'destroyed';

/** Faults of watches. */
export const watchFaults: Readonly<Record<string, Fault>> = {
  'an event is lost now and then': (core, environment) =>
    withEvents(
      core,
      environment,
      eachEvent((event, index) => (isChange(event) && index % 7 === 6 ? undefined : event)),
    ),
  'an event comes twice': (core, environment) =>
    withEvents(
      core,
      environment,
      () => (batch) => batch.flatMap((event, index) => (event.type === 'updated' && index === 0 ? [event, event] : [event])),
    ),
  'two events come in the wrong order': (core, environment) =>
    withEvents(core, environment, () => (batch) => {
      const last = batch.at(-1);
      const before = batch.at(-2);
      if (last === undefined || before === undefined || !isChange(last) || !isChange(before)) return batch;
      return [...batch.slice(0, -2), last, before];
    }),
  'the old value is the new one': (core, environment) =>
    withEvents(
      core,
      environment,
      eachEvent((event) => (event.type === 'updated' ? Object.freeze({ ...copy(event), old: event.resource }) : event)),
    ),
  'a destroyed event carries a tombstone': (core, environment) =>
    withEvents(
      core,
      environment,
      eachEvent((event) => {
        if (event.type !== 'destroyed') return event;
        return Object.freeze({ ...copy(event), resource: Object.freeze({ metadata: event.resource.metadata }) }) as StateEvent;
      }),
    ),
  'a bookmark comes before bootstrapped': (core, environment) =>
    over(core, {
      async watchKind(kind, options = {}) {
        const now = await core.watchKind(kind, { bootstrapBookmark: true });
        const first = await now[Symbol.asyncIterator]().next();
        await now[Symbol.asyncDispose]();
        const bookmark = first.value?.bookmark;
        const early = withEvents(
          core,
          environment,
          eachEvent((event) =>
            event.bookmark === undefined && event.type === 'created' && bookmark ? Object.freeze({ ...event, bookmark }) : event,
          ),
        );
        return early.watchKind(kind, options);
      },
    }),
  'the contents come in the order of their creation': (core, environment) =>
    withEvents(core, environment, () => (batch) => {
      const end = batch.findIndex((event) => event.type === 'bootstrapped');
      if (end < 0) return batch;
      const revision = (event: StateEvent): number => ('resource' in event ? Number(event.resource.metadata.version) : 0);
      return [...batch.slice(0, end).toSorted((left, right) => revision(left) - revision(right)), ...batch.slice(end)];
    }),
  'bootstrapped never comes': (core, environment) =>
    withEvents(
      core,
      environment,
      eachEvent((event) => (event.type === 'bootstrapped' ? undefined : event)),
    ),
  'what stops to match a query is not told': (core, environment) =>
    withEvents(core, environment, (options) =>
      eachEvent((event) =>
        event.type === 'destroyed' && options.labelQueries !== undefined && event.resource.metadata.labels.app !== 'web'
          ? undefined
          : event,
      )(),
    ),
  'what starts to match a query comes as updated': (core, environment) =>
    withEvents(core, environment, (options) =>
      eachEvent((event) => {
        const before =
          options.labelQueries !== undefined && event.type === 'created' && event.resource.metadata.version !== event.resource.metadata.uid;
        return before && event.bookmark !== undefined
          ? Object.freeze({ ...copy(event), type: 'updated' as const, resource: event.resource })
          : event;
      })(),
    ),
  'a query is not looked at': (core, environment) =>
    withEvents(
      core,
      environment,
      () => (batch) => batch,
      ({ labelQueries: _labels, ...options }) => options,
    ),
  'a watch begins with the value before the last write': (core, environment) => {
    const previous = new Map<string, Resource>();
    const remembers = over(core, {
      async update(resource, call) {
        const before = await core.get(resource.metadata as Pointer);
        const written = await core.update(resource, call);
        previous.set(resource.metadata.id, before);
        return written;
      },
    });
    return withEvents(remembers, environment, (options, about) => {
      const stale = new Map(previous);
      let begins = about === 'one' ? options.startFromBookmark === undefined : options.bootstrapContents === true;
      return (batch) => {
        const late: StateEvent[] = [];
        const early = batch.map((event) => {
          const old = begins && event.type === 'created' ? stale.get(event.resource.metadata.id) : undefined;
          if (about === 'one' || event.type === 'bootstrapped') begins = false;
          if (event.type !== 'created' || old === undefined) return event;
          late.push({ type: 'updated', resource: event.resource, old, revision: Number(event.resource.metadata.version) });
          return { type: 'created' as const, resource: old };
        });
        return [...early, ...late];
      };
    });
  },
  'the contents of a watch hold what was destroyed last': (core, environment) => {
    let gone: Resource | undefined;
    const remembers = over(core, {
      async destroy(pointer, call) {
        const before = await core.get(pointer);
        await core.destroy(pointer, call);
        gone = before as Resource;
      },
    });
    return withEvents(remembers, environment, (options) => {
      let first = options.bootstrapContents === true ? gone : undefined;
      return (batch) => {
        const stale = first;
        first = undefined;
        if (stale === undefined) return batch;
        return [{ type: 'created', resource: stale }, ...batch, { type: 'destroyed', resource: stale }];
      };
    });
  },
  'a watch of one resource has no first event': (core, environment) =>
    withEvents(core, environment, (options, about) =>
      eachEvent((event, index) => (about === 'one' && index === 0 && options.startFromBookmark === undefined ? undefined : event))(),
    ),
  'a watch is established late': (core) =>
    over(core, {
      async watchKind(kind, options = {}) {
        let late: ReturnType<typeof core.watchKind> | undefined;
        let iterator: AsyncIterator<never> | undefined;
        const open = async () => {
          late ??= core.watchKind(kind, options);
          iterator ??= (await late)[Symbol.asyncIterator]() as unknown as AsyncIterator<never>;
          return iterator;
        };
        return {
          [Symbol.asyncIterator]: () => ({ next: async () => (await open()).next() }),
          forEach: () => Promise.resolve(),
          drain: () => Promise.resolve(),
          [Symbol.asyncDispose]: async () => (await late)?.[Symbol.asyncDispose](),
        } as never;
      },
    }),
  'a handler is not waited for': (core) =>
    over(core, {
      async watchKind(kind, options) {
        const watch = await core.watchKind(kind, options);
        return {
          [Symbol.asyncIterator]: () => watch[Symbol.asyncIterator](),
          forEach: (handle: (event: unknown) => unknown) => watch.forEach((event) => void handle(event)),
          drain: (deliver: Parameters<typeof watch.drain>[0]) => watch.drain(deliver),
          [Symbol.asyncDispose]: () => watch[Symbol.asyncDispose](),
        } as never;
      },
    }),
  'a bookmark that is no good starts from now': (core) =>
    over(core, {
      watchKind: (kind, options = {}) =>
        core.watchKind(kind, options).catch((error: unknown) => {
          if (!isInvalidBookmarkError(error)) throw error;
          const { startFromBookmark: _bookmark, ...rest } = options;
          return core.watchKind(kind, rest);
        }),
    }),
  'a resumed watch repeats the first event': (core, environment) =>
    withEvents(core, environment, (options) => {
      let first = options.startFromBookmark !== undefined;
      return (batch) => {
        const [event] = batch;
        if (!first || event === undefined) return batch;
        first = false;
        return [event, ...batch];
      };
    }),
  'a resumed watch leaves out the first event': (core, environment) =>
    withEvents(core, environment, (options) => {
      let first = options.startFromBookmark !== undefined;
      return (batch) => {
        if (!first) return batch;
        first = false;
        return batch.slice(1);
      };
    }),
  'a tail begins with the newest': (core, environment) =>
    withEvents(core, environment, (options) => (batch) => (options.tailEvents === undefined ? batch : batch.toReversed())),
  'a bookmark stands one event too far': (core, environment) =>
    withEvents(
      core,
      environment,
      () => (batch) =>
        batch.map((event, index) => {
          const next = batch[index + 1];
          return next?.bookmark !== undefined && event.bookmark !== undefined
            ? Object.freeze({ ...copy(event), bookmark: next.bookmark })
            : event;
        }),
    ),
  'a slow watcher is not told what it missed': (core, environment) =>
    withEvents(
      core,
      environment,
      eachEvent((event) => (event.resync === true ? undefined : event)),
    ),
  'a slow watcher is told of the end of what it never saw': (core, environment) =>
    withEvents(
      core,
      environment,
      () => (batch) =>
        batch.flatMap((event) =>
          event.type === 'created' && event.resync === true
            ? [Object.freeze({ ...copy(event), type: 'destroyed' as const, resource: event.resource }), event]
            : [event],
        ),
    ),
  'a slow watcher is not told what went': (core, environment) =>
    withEvents(
      core,
      environment,
      eachEvent((event) => (event.type === 'destroyed' && event.resync === true ? undefined : event)),
    ),
  'a slow watcher is told an old value that it never saw': (core, environment) =>
    withEvents(
      core,
      environment,
      eachEvent((event) =>
        event.type === 'updated' && event.resync === true ? Object.freeze({ ...copy(event), old: event.resource }) : event,
      ),
    ),
  'a slow watcher fails': (core) =>
    over(core, {
      watchKind: (kind, options) => core.watchKind(kind, { ...options, strict: true }),
      watch: (pointer, options) => core.watch(pointer, { ...options, strict: true }),
    }),
  'a strict watch is coalesced': (core) =>
    over(core, {
      watchKind: (kind, { strict: _strict, ...options } = {}) => core.watchKind(kind, options),
      watch: (pointer, { strict: _strict, ...options } = {}) => core.watch(pointer, options),
    }),
  'a bookmark inside a coalesced stretch is new': (core, environment) =>
    withEvents(core, environment, () => (batch) => {
      const last = batch.at(-1);
      return batch.map((event) =>
        event.resync === true && last?.bookmark !== undefined ? Object.freeze({ ...event, bookmark: last.bookmark }) : event,
      );
    }),
  'another incarnation comes as an update': (core, environment) =>
    withEvents(
      core,
      environment,
      () => (batch) =>
        batch.flatMap((event, index) => {
          const next = batch[index + 1];
          if (event.type === 'destroyed' && next?.type === 'created' && next.resource.metadata.id === event.resource.metadata.id) return [];
          const before = batch[index - 1];
          if (event.type === 'created' && before?.type === 'destroyed' && before.resource.metadata.id === event.resource.metadata.id) {
            return [
              Object.freeze({
                ...copy(event),
                type: 'updated' as const,
                resource: event.resource,
                old: before.resource as typeof event.resource,
              }),
            ];
          }
          return [event];
        }),
    ),
};

/** An event as a plain object: the bookmark of a shared event is a getter, which a spread does not take. */
function copy(event: StateEvent): StateEvent {
  return { ...event, ...(event.bookmark && { bookmark: event.bookmark }) };
}
