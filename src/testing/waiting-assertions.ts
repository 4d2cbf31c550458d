import type { Environment } from '../environment/index.ts';
import type { Kind, Metadata, Pointer, Resource, TypedKind } from '../resource/index.ts';
import { isIncarnationConflictError, isNotFoundError, kindText, pointerText } from '../resource/index.ts';
import type { State, TeardownOptions } from '../state/index.ts';

/** Where assertions look, and how long they wait. */
export interface AssertionWorld {
  readonly state: State;
  readonly environment: Environment;
  /** On the environment's elapsed time, milliseconds. @default 10_000 */
  readonly timeoutMs?: number;
}

/** Throws to say that a resource is not yet as it should be. */
export type ResourceCheck<Spec> = (resource: Resource<Spec>) => void | Promise<void>;

/** Waits until a resource is there and passes the check; answers it. */
export async function assertResource<Spec>(
  world: AssertionWorld,
  pointer: Pointer<Spec>,
  check: ResourceCheck<Spec> = () => {},
): Promise<Resource<Spec>> {
  const found = await eventually(world, [pointer], `${pointerText(pointer)} to be as asserted`, async () => {
    const resource = await world.state.get(pointer);
    await check(resource);
    return resource;
  });
  return found;
}

/** Waits until all of these are there, each passing the check. */
export async function assertResources<Spec>(
  world: AssertionWorld,
  kind: TypedKind<Spec>,
  ids: readonly string[],
  check: ResourceCheck<Spec> = () => {},
): Promise<void> {
  await eventually(world, [kind], `${ids.length} of ${kindText(kind)} to be as asserted`, async () => {
    for (const id of ids) await check(await world.state.get({ ...kind, id } as Pointer<Spec>));
  });
}

/** Waits until every resource of a kind passes the check. */
export async function assertAll<Spec>(world: AssertionWorld, kind: TypedKind<Spec>, check: ResourceCheck<Spec>): Promise<void> {
  await eventually(world, [kind], `all of ${kindText(kind)} to be as asserted`, async () => {
    for (const resource of (await world.state.list(kind)).items) {
      try {
        await check(resource);
      } catch (error) {
        throw new Error(`${resource.metadata.id}: ${textOf(error)}`, { cause: error });
      }
    }
  });
}

/** Waits until a resource is not there (any more). */
export async function assertNoResource(world: AssertionWorld, pointer: Pointer): Promise<void> {
  await eventually(world, [pointer], `${pointerText(pointer)} not to exist`, async () => {
    const found = await findOrUndefined(world.state, pointer);
    if (found === undefined) return;
    const { phase, finalizers, owner } = found.metadata;
    throw new Error(`it is there: ${phase}, owned by ${owner === '' ? 'nobody' : owner}, finalizers: ${finalizers.join(', ') || 'none'}`);
  });
}

/** Waits until there are so many of a kind. */
export async function assertLength(world: AssertionWorld, kind: Kind, length: number): Promise<void> {
  await eventually(world, [kind], `${length} of ${kindText(kind)}`, async () => {
    const ids = await resourceIds(world, kind);
    if (ids.length !== length) throw new Error(`there are ${ids.length}${ids.length === 0 ? '' : `: ${ids.slice(0, 20).join(', ')}`}`);
  });
}

/** Tears down and destroys all of a kind, whoever owns them; waits for their finalizers. */
export async function destroyAll(world: AssertionWorld, kind: Kind): Promise<void> {
  const { items } = await world.state.list(kind);
  const stop = new AbortController();
  const all = Promise.all(
    items.map(({ metadata }) =>
      unlessItWent(world.state.teardownAndDestroy(metadata, { ...exactly(world.state, metadata), signal: stop.signal })),
    ),
  );
  const timer = world.environment.after(world.timeoutMs ?? defaultTimeoutMs, () => stop.abort());
  try {
    await all;
  } catch (error) {
    if (!stop.signal.aborted) throw error;
    const left = (await world.state.list(kind)).items.map(({ metadata }) => `${metadata.id} (${metadata.finalizers.join(', ')})`);
    throw new Error(`timed out: ${kindText(kind)} could not be destroyed: ${left.join(', ')}`, { cause: error });
  } finally {
    timer[Symbol.dispose]();
    stop.abort();
  }
}

/** Tears down all of a kind, whoever owns them, and destroys none. */
export async function teardownAll(world: AssertionWorld, kind: Kind): Promise<void> {
  const { items } = await world.state.list(kind);
  await Promise.all(items.map(({ metadata }) => unlessItWent(world.state.teardown(metadata, exactly(world.state, metadata)))));
}

/** What was listed, and nothing that others put in its place meanwhile. */
function exactly({ capabilities }: State, { owner, uid }: Metadata): TeardownOptions {
  return { owner, ...(capabilities.incarnations && { uid }) };
}

/** Others may have ended it first. */
async function unlessItWent(end: Promise<unknown>): Promise<void> {
  try {
    await end;
  } catch (error) {
    if (!isNotFoundError(error) && !isIncarnationConflictError(error)) throw error;
  }
}

/** The ids of a kind, ordered by their bytes. */
export async function resourceIds(world: AssertionWorld, kind: Kind): Promise<readonly string[]> {
  return (await world.state.list(kind)).items.map(({ metadata }) => metadata.id);
}

const defaultTimeoutMs = 10_000;

async function findOrUndefined(state: State, pointer: Pointer): Promise<Resource | undefined> {
  try {
    return await state.get(pointer);
  } catch (error) {
    if (isNotFoundError(error)) return undefined;
    throw error;
  }
}

/** Tries at the start and after each change of the kinds, until it passes. */
async function eventually<Result>(
  world: AssertionWorld,
  kinds: readonly Kind[],
  what: string,
  attempt: () => Promise<Result>,
): Promise<Result> {
  const { state, environment, timeoutMs = defaultTimeoutMs } = world;
  const stop = new AbortController();
  const timer = environment.after(timeoutMs, () => stop.abort());
  try {
    // Watched before the first look, so that no change is missed.
    await using watch = await state.watchKinds(
      kinds.map(({ namespace, type }) => ({ namespace, type })),
      { signal: stop.signal },
    );
    const changes = watch[Symbol.asyncIterator]();
    for (;;) {
      let failure: unknown;
      try {
        return await attempt();
      } catch (error) {
        failure = error;
      }
      if ((await changes.next()).done === true) {
        const why = stop.signal.aborted ? `timed out after ${timeoutMs} ms` : 'the store was closed';
        throw new Error(`${why}, expected ${what}: ${textOf(failure)}`, { cause: failure });
      }
    }
  } finally {
    timer[Symbol.dispose]();
  }
}

function textOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
