import { importStore, storeFileAdmin } from '../../backends/sqlite/index.ts';
import type { Resource } from '../../resource/index.ts';
import {
  findError,
  isAlreadyExistsError,
  isNotFoundError,
  metaNamespace,
  pointerText,
  sameSet,
  sameValue,
  visibleText,
} from '../../resource/index.ts';
import { storeUrlText } from '../../stores/index.ts';
import { parentAnnotation } from '../../workload/index.ts';
import type { CommandContext } from '../context.ts';
import { ExitError, exitCodeOf, exitCodes } from '../exit-codes.ts';
import { spool } from '../file-sink.ts';
import type { ReadResource } from '../files/resource-lines.ts';
import { readResources } from '../files/resource-lines.ts';
import type { Session } from '../session.ts';
import { connect } from '../session.ts';
import type { StoreTarget } from '../store-target.ts';
import { makeFolder } from '../store-target.ts';
import type { StoreTask } from './store.ts';
import { long } from './store.ts';

/** Resources that are checked by the store's definitions at once, and writes that are on their way at once. */
const perCheck = 200;
const underWay = 32;
/** So many problems are told. */
const mostProblems = 20;

/** `store import FILE`: all is checked before anything is written. */
export async function importCommand(context: CommandContext, target: StoreTarget, file: string): Promise<number> {
  const { io, environment } = context;
  const standard = file === '-';
  const path = standard ? await spool(io.standardInput?.() ?? textOf(io.readStandardInput())) : file;
  try {
    if ((await environment.files.stat(path))?.kind !== 'file') throw new ExitError(exitCodes.notFound, `${file} is not there, or no file`);
    const name = standard ? '<stdin>' : file;
    const read = (): AsyncIterable<ReadResource> => readResources(environment.files, path, name);
    if (target.kind === 'file' && (await isEmpty(context, target.file))) return await importWhole(context, target.file, read, name);
    const store = target.kind === 'file' ? `sqlite:${target.file}` : storeUrlText(target.opened.url);
    await using session = await connect({ store, io, environment });
    return await importEach(context, session, read, name);
  } finally {
    if (standard) await environment.files.remove(path);
  }
}

async function* textOf(text: Promise<string>): AsyncGenerator<Uint8Array> {
  yield Buffer.from(await text);
}

async function isEmpty({ environment }: CommandContext, file: string): Promise<boolean> {
  const stat = await environment.files.stat(file);
  if (stat === undefined || stat.size === 0) return true;
  for await (const _resource of storeFileAdmin({ file, environment }).export()) return false;
  return true;
}

/** A store is made of the file, uids and times and all; where the file names none, new ones are given in its order. */
async function importWhole(context: CommandContext, file: string, read: () => AsyncIterable<ReadResource>, name: string): Promise<number> {
  const { environment, io } = context;
  const { validateLocally } = await import('../local-control.ts');
  const { count, identified } = await long(context, `checking ${name}`, (task) => checkAll(validateLocally, read, task, name));
  if (identified > 0 && identified < count)
    throw new ExitError(
      exitCodes.failed,
      `${name}: ${identified} resources have a uid and a version, ${count - identified} have not; either all or none may`,
    );
  await makeFolder(context, file);
  const done = await long(context, `importing ${name}`, (task) =>
    importStore({
      file,
      environment,
      ...task,
      resources: given(counted(read(), task, 'imported'), identified > 0, environment.timestamp()),
    }),
  );
  io.write(
    `${done.file}: ${done.resources} resources${identified > 0 ? ', with the uids that they had' : ''}; it goes on from revision ${done.revision}\n`,
  );
  return exitCodes.ok;
}

async function* given(all: AsyncIterable<ReadResource>, identified: boolean, now: string): AsyncGenerator<Resource> {
  let next = 0;
  for await (const { resource } of all) {
    const { metadata, spec } = resource;
    const number = String(++next);
    const { created, updated } = metadata;
    const times = { created: created === '' ? now : created, updated: updated === '' ? now : updated };
    yield { metadata: { ...metadata, ...times, ...(!identified && { uid: number, version: number }) }, spec };
  }
}

/** Each is created in a store that holds something already; what is there stays, and is told unless it is the same. */
async function importEach(
  context: CommandContext,
  session: Session,
  read: () => AsyncIterable<ReadResource>,
  name: string,
): Promise<number> {
  const { io } = context;
  const { children } = await long(context, `checking ${name}`, (task) => checkAll((all) => session.validate(all), read, task, name));
  const counts = { created: 0, unchanged: 0, failed: 0 };
  let code: number = exitCodes.ok;
  const soFar = (): string =>
    `${counts.created} resources are written already; import the file once more to go on, what is there is passed over`;
  const importAll = async (task: StoreTask): Promise<void> => {
    let fatal: unknown;
    // Whoever looks after children takes one without its parent for an orphan: parents come first.
    for (const round of children ? (['parents', 'children'] as const) : (['all'] as const)) {
      const running = new Map<string, Promise<void>>();
      try {
        for await (const { resource, place } of counted(read(), task, 'imported')) {
          const parent = parentOf(resource);
          if (round !== 'all' && (round === 'parents') !== (parent === undefined)) continue;
          if (parent !== undefined) await running.get(parent);
          if (running.size >= underWay) await Promise.race(running.values());
          const key = pointerText(resource.metadata);
          await running.get(key);
          if (fatal !== undefined) break;
          running.set(
            key,
            importOne(session, resource)
              .then((verb) => void counts[verb]++)
              .catch((error: unknown) => {
                counts.failed++;
                code = Math.max(code, exitCodeOf(error));
                io.writeError(`${place}: ${visibleText(error instanceof Error ? error.message : String(error))}\n`);
                const known = findError(error);
                if (known === undefined || stops.has(known.code)) fatal ??= error;
              })
              .finally(() => running.delete(key)),
          );
        }
      } finally {
        // Also when it is cut short: what is told as written is exact.
        await Promise.all(running.values());
      }
      if (fatal !== undefined) throw fatal;
    }
  };
  await long(context, `importing ${name}`, importAll, soFar);
  io.write(`${counts.created} created, ${counts.unchanged} were there already, ${counts.failed} failed\n`);
  return code;
}

/** With these the next one would fare no better. */
const stops: ReadonlySet<string> = new Set(['Unavailable', 'Closed', 'Corrupt', 'NoSpace', 'Unauthenticated']);

/** Every resource is checked before the first is written. */
async function checkAll(
  validate: (resources: readonly Resource[]) => Promise<Pick<Awaited<ReturnType<Session['validate']>>, 'problems'>>,
  read: () => AsyncIterable<ReadResource>,
  task: StoreTask,
  name: string,
): Promise<{ readonly count: number; readonly identified: number; readonly children: boolean }> {
  const problems: string[] = [];
  let batch: ReadResource[] = [];
  let children = false;
  let count = 0;
  let identified = 0;
  const check = async (): Promise<void> => {
    const found = await validate(batch.map(({ resource }) => resource));
    for (const { index, path, message } of found.problems) {
      const { place, resource } = batch[index] as ReadResource;
      problems.push(`${place}: ${pointerText(resource.metadata)}: ${path === '' ? '' : `${path}: `}${visibleText(message)}`);
    }
    batch = [];
    if (problems.length >= mostProblems) throw refused(problems);
  };
  for await (const item of counted(read(), task, 'checked')) {
    count++;
    const { uid, version } = item.resource.metadata;
    if (uid !== '' && version !== 'undefined') identified++;
    children ||= parentOf(item.resource) !== undefined;
    if (batch.push(item) >= perCheck) await check();
  }
  await check();
  if (problems.length > 0) throw refused(problems);
  if (count === 0) throw nothing(name);
  return { count, identified, children };
}

function refused(problems: readonly string[]): ExitError {
  return new ExitError(exitCodes.failed, `nothing was written:\n${problems.join('\n')}`);
}

function nothing(name: string): ExitError {
  return new ExitError(exitCodes.failed, `nothing to do: no resource in ${name}`);
}

async function importOne({ state }: Session, resource: Resource): Promise<'created' | 'unchanged'> {
  const { metadata, spec } = resource;
  const { owner } = metadata;
  try {
    await state.create({ metadata: { ...metadata, version: 'undefined', uid: '' }, spec }, { owner });
    return 'created';
  } catch (error) {
    if (!isAlreadyExistsError(error)) throw error;
    const there = await state.get(metadata).catch((failure: unknown) => {
      if (isNotFoundError(failure)) throw error;
      throw failure;
    });
    if (isSame(resource, there)) return 'unchanged';
    throw error;
  }
}

/** What is there is what would be written, or its controller has made it meanwhile, or the running program describes its own types. */
function isSame(resource: Resource, there: Resource): boolean {
  const [left, right] = [resource.metadata, there.metadata];
  if (left.namespace === metaNamespace) return true;
  const parent = parentOf(resource);
  if (parent !== undefined && parent === parentOf(there)) return true;
  return (
    left.owner === right.owner &&
    left.phase === right.phase &&
    sameSet(left.finalizers, right.finalizers) &&
    sameValue(left.labels, right.labels) &&
    sameValue(left.annotations, right.annotations) &&
    sameValue(resource.spec, there.spec)
  );
}

/** The workload that a child bears the mark of, as a pointer's text. */
function parentOf({ metadata }: Resource): string | undefined {
  const text = metadata.annotations[parentAnnotation];
  if (text === undefined) return undefined;
  try {
    const { group, kind, namespace, name } = JSON.parse(text) as Record<string, unknown>;
    return pointerText({ namespace: String(namespace), type: `${kind}.${group}`, id: String(name) });
  } catch {
    return undefined;
  }
}

async function* counted(all: AsyncIterable<ReadResource>, { signal, onProgress }: StoreTask, step: string): AsyncGenerator<ReadResource> {
  let done = 0;
  for await (const item of all) {
    signal.throwIfAborted();
    if (++done % 500 === 0) onProgress({ step, done, total: 0 });
    yield item;
  }
}
