import { strict as assert } from 'node:assert';
import type { Resource, ResourceQuery } from '../../resource/index.ts';
import { errorCode, findError, matchesQuery } from '../../resource/index.ts';
import type { Bookmark, StateEvent } from '../../state/index.ts';
import { StateModel } from './model.ts';
import type { Reader } from './reader.ts';
import type { World } from './world.ts';

/** What a generated run may do; plain data, so that a failing run can be made smaller. */
export type Command =
  | { readonly do: 'create'; readonly id: string; readonly owner: string; readonly app: string; readonly finalizer: boolean }
  | {
      readonly do: 'update';
      readonly id: string;
      readonly owner: string;
      readonly app: string;
      readonly size: number;
      readonly stale: boolean;
      readonly phase: 'running' | 'tearingDown' | 'same';
      readonly expectedPhase: 'running' | 'tearingDown' | 'any';
    }
  | { readonly do: 'destroy'; readonly id: string; readonly owner: string; readonly uid: 'none' | 'right' | 'stale' }
  | { readonly do: 'finalizer'; readonly id: string; readonly add: boolean }
  | { readonly do: 'teardown'; readonly id: string; readonly owner: string }
  | { readonly do: 'list'; readonly query: QueryName }
  | { readonly do: 'mark' }
  | { readonly do: 'watch'; readonly query: QueryName; readonly start: 'now' | 'contents' | 'mark' | 'tail'; readonly place: number }
  | { readonly do: 'watchOne'; readonly id: string };

export const queries = {
  all: {},
  web: { labelQueries: [{ terms: [{ key: 'app', op: 'equal', values: ['web'] }] }] },
  notWeb: {
    labelQueries: [{ terms: [{ key: 'app', op: 'equal', values: ['web'], invert: true }] }, { terms: [{ key: 'end', op: 'exists' }] }],
  },
  ids: { idQuery: '^(a|zz)' },
} as const satisfies Record<string, ResourceQuery>;
export type QueryName = keyof typeof queries;

interface OpenWatch {
  readonly reader: Reader;
  readonly query: ResourceQuery;
  readonly matches: (resource: Resource) => boolean;
  /** What it must give before the events of the commits after `place`. */
  readonly first: readonly string[];
  readonly place: number;
}

/** Runs commands against a store and a model side by side, and compares every answer and every event. */
export async function runCommands(world: World, commands: readonly Command[]): Promise<void> {
  const run = new Run(world);
  for (const command of commands) await run.step(command);
  await run.finish();
}

class Run {
  readonly #world: World;
  readonly #model = new StateModel();
  readonly #watches: OpenWatch[] = [];
  readonly #marks: { readonly bookmark: Bookmark; readonly place: number }[] = [];

  constructor(world: World) {
    this.#world = world;
  }

  async step(command: Command): Promise<void> {
    const { core, state } = this.#world;
    const model = this.#model;
    switch (command.do) {
      case 'create': {
        const { id, owner, app, finalizer } = command;
        const made = this.#world.thing(id, { size: 0 }, { labels: labelsOf(app), finalizers: finalizer ? ['f'] : [] });
        const value = await this.#expect(model.create(id), core.create(made, { owner }), `create ${id}`);
        if (value !== undefined) model.commit(id, value);
        return;
      }
      case 'update': {
        const { id, owner, app, size, expectedPhase } = command;
        const current = model.resources.get(id)?.metadata;
        const seen = model.versions.get(id) ?? [];
        const version = (command.stale ? seen.at(-2) : current?.version) ?? '0';
        const phase = command.phase === 'same' ? (current?.phase ?? 'running') : command.phase;
        const next = this.#world.thing(id, { size }, { version, phase, labels: labelsOf(app), finalizers: current?.finalizers ?? [] });
        const call = core.update(next, { owner, expectedPhase });
        const value = await this.#expect(model.update(id, { owner, version, phase, expectedPhase }), call, `update ${id}`);
        if (value !== undefined) model.commit(id, value);
        return;
      }
      case 'destroy': {
        const { id, owner } = command;
        const uid =
          command.uid === 'right'
            ? model.resources.get(id)?.metadata.uid
            : command.uid === 'stale'
              ? (model.uids.get(id)?.[0] ?? 'x')
              : undefined;
        const expected = model.destroy(id, { owner, uid });
        await this.#expect(expected, core.destroy(this.#world.pointer(id), { owner, ...(uid !== undefined && { uid }) }), `destroy ${id}`);
        if (expected === undefined) model.commit(id, undefined);
        return;
      }
      case 'finalizer':
      case 'teardown':
        return this.#helper(
          command.id,
          command.do === 'teardown' ? model.teardown(command.id, command.owner) : this.#missing(command.id),
          () =>
            command.do === 'teardown'
              ? state.teardown(this.#world.pointer(command.id), { owner: command.owner })
              : command.add
                ? state.addFinalizer(this.#world.pointer(command.id), 'f')
                : state.removeFinalizer(this.#world.pointer(command.id), 'f'),
        );
      case 'list': {
        const query = queries[command.query];
        const { items } = await core.list(this.#world.kind, query);
        assert.deepEqual(
          items.map(versionText),
          model.list((resource) => matchesQuery(resource, query)).map(versionText),
          `list ${command.query}`,
        );
        return;
      }
      case 'mark':
        this.#marks.push({ bookmark: await this.#world.bookmark(), place: model.commits.length });
        return;
      case 'watch':
        return this.#watch(command);
      case 'watchOne': {
        const { id } = command;
        const current = model.resources.get(id);
        const first = current === undefined ? [`destroyed ${id} undefined`] : [`created ${versionText(current)}`];
        const matches = (resource: Resource): boolean => resource.metadata.id === id;
        this.#watches.push({
          reader: await this.#world.watch(id),
          query: { idQuery: `^${id}$` },
          matches,
          first,
          place: model.commits.length,
        });
        return;
      }
    }
  }

  /** Reads every watch to a last write that all of them see, and resumes at bookmarks on the way. */
  async finish(): Promise<void> {
    const { core } = this.#world;
    const model = this.#model;
    const end = await core.create(this.#world.thing('zz', { size: 0 }, { labels: { app: 'web', end: '' } }));
    model.commit('zz', end);
    for (const { reader, query, matches, first, place } of this.#watches) {
      const own = model.eventsAfter(place, matches);
      const expected = [...first, ...own];
      const events = await reader.take(expected.length);
      assert.deepEqual(events.map(eventText), expected, `events of a watch with ${JSON.stringify(query)} from commit ${place}`);
      for (const event of events.slice(0, Math.max(0, first.indexOf('bootstrapped')))) {
        assert.equal(event.bookmark, undefined, 'no bookmark before bootstrapped');
      }
      this.#checkOrder(events);
      for (const index of [0, Math.floor(events.length / 2), events.length - 2]) {
        const bookmark = events[index]?.bookmark;
        if (bookmark === undefined || index < first.length - 1) continue;
        const rest = expected.slice(index + 1);
        const resumed = await this.#world.watchKind({ startFromBookmark: bookmark, ...query });
        assert.deepEqual((await resumed.take(rest.length)).map(eventText), rest, `W5: resumed at the bookmark of ${expected[index]}`);
        await resumed[Symbol.asyncDispose]();
      }
    }
  }

  #checkOrder(events: readonly StateEvent[]): void {
    let last = -1;
    for (const event of events) {
      if (event.revision === undefined) continue;
      assert.ok(event.revision >= last, `W1: revision ${event.revision} came after ${last}`);
      last = event.revision;
    }
  }

  async #watch(command: Command & { readonly do: 'watch' }): Promise<void> {
    const model = this.#model;
    const query = queries[command.query];
    const matches = (resource: Resource): boolean => resource.metadata.id === 'zz' || matchesQuery(resource, query);
    const mark = this.#marks[command.place % Math.max(1, this.#marks.length)];
    const place = model.commits.length;
    if (command.start === 'contents') {
      const first = [...model.list(matches).map((resource) => `created ${versionText(resource)}`), 'bootstrapped'];
      const reader = await this.#world.watchKind({ bootstrapContents: true, ...query });
      this.#watches.push({ reader, query, matches, first, place });
    } else if (command.start === 'mark' && mark !== undefined) {
      const reader = await this.#world.watchKind({ startFromBookmark: mark.bookmark, ...query });
      this.#watches.push({ reader, query, matches, first: [], place: mark.place });
    } else if (command.start === 'tail' && this.#world.capabilities.tailEvents) {
      const tailEvents = command.place;
      const reader = await this.#world.watchKind({ tailEvents, ...query });
      this.#watches.push({ reader, query, matches, first: [], place: Math.max(0, place - tailEvents) });
    } else {
      this.#watches.push({ reader: await this.#world.watchKind(query), query, matches, first: [], place });
    }
  }

  #missing(id: string): string | undefined {
    return this.#model.resources.has(id) ? undefined : 'NotFound';
  }

  /** A helper that writes once or, when nothing changes, not at all. */
  async #helper(id: string, expected: string | undefined, call: () => Promise<unknown>): Promise<void> {
    await this.#expect(expected, call(), `a helper on ${id}`);
    if (expected !== undefined) return;
    const value = await this.#world.core.get(this.#world.pointer(id));
    if (value.metadata.version !== this.#model.resources.get(id)?.metadata.version) this.#model.commit(id, value);
  }

  async #expect<Value>(expected: string | undefined, call: Promise<Value>, what: string): Promise<Value | undefined> {
    const outcome = await call.then(
      (value) => ({ value }),
      (error: unknown) => ({ error }),
    );
    const found = 'error' in outcome ? (findError(outcome.error)?.reason ?? errorCode(outcome.error) ?? String(outcome.error)) : undefined;
    assert.equal(found, expected, `${what} must end with ${expected ?? 'success'}, found ${found ?? 'success'}`);
    return 'value' in outcome ? outcome.value : undefined;
  }
}

function labelsOf(app: string): Readonly<Record<string, string>> {
  return app === '' ? {} : { app };
}

function versionText({ metadata }: { readonly metadata: { readonly id: string; readonly version: string } }): string {
  return `${metadata.id} ${metadata.version}`;
}

function eventText(event: StateEvent): string {
  if (!('resource' in event)) return event.type;
  const text = `${event.type} ${versionText(event.resource)}`;
  return event.type === 'updated' ? `${text} over ${event.old?.metadata.version}` : text;
}
