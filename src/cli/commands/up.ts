import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { StackExtra } from '../../host/index.ts';
import { stackDefinition, stackStatusDefinition } from '../../host/index.ts';
import { isLockedError, isNotFoundError, isUnavailableError, visibleText } from '../../resource/index.ts';
import type { State } from '../../state/index.ts';
import type { OpenedStore } from '../../stores/index.ts';
import { parseStoreUrl } from '../../stores/index.ts';
import type { CommandContext } from '../context.ts';
import { deadline, timeoutMs } from '../context.ts';
import { exitCodes, UsageError } from '../exit-codes.ts';
import { applyAll } from '../files/apply-resources.ts';
import type { FileResource } from '../files/load-files.ts';
import { checkPaths, loadResourceFiles } from '../files/load-files.ts';
import { LiveView } from '../live-view.ts';
import { readinessOf, validateLocally } from '../local-control.ts';
import { openPatiently } from '../open-patiently.ts';
import type { Operator } from '../operator.ts';
import { startOperator } from '../operator.ts';
import { shownName } from '../output/names.ts';
import type { Session } from '../session.ts';
import { connect, defaultFile, defaultSocket, storeFolder } from '../session.ts';
import { TypesLookup } from '../types-lookup.ts';
import { waitDestroyed } from './wait.ts';

export interface UpOptions {
  /** `ready`: end with 0 once everything is. */
  readonly until?: string;
}

/** How long stacks may take to end that were being deleted, milliseconds. */
const endsWithinMs = 120_000;

/** The stack that is shown when no file is named. */
const exampleFile = fileURLToPath(new URL('../../../examples/host/shop.yaml', import.meta.url));

/** `up [FILE…]` */
export async function upCommand(context: CommandContext, files: readonly string[], options: UpOptions): Promise<number> {
  if (options.until !== undefined && options.until !== 'ready') throw new UsageError(`--until: expected ready, found ${options.until}`);
  const { io, environment } = context;
  const paths = files.length > 0 ? files : [exampleFile];
  await checkPaths(paths, io, environment);
  const beside = await running(context);
  if (beside !== undefined) return await applyBeside(context, beside, paths);
  const url = parseStoreUrl(context.options.store ?? `sqlite:${defaultFile(io.storeDirectory)}`, io.directory);
  let opened: OpenedStore;
  try {
    opened = await openPatiently(context, url);
  } catch (error) {
    // Whoever was quicker may be serving by now.
    const quicker = isLockedError(error) ? await running(context) : undefined;
    if (quicker === undefined) throw error;
    return await applyBeside(context, quicker, paths);
  }
  await using store = opened;
  const listen = `unix:${defaultSocket(io.storeDirectory)}`;
  const operator = await startOperator({ environment, store, listen: [listen], directory: io.directory, modules: [], host: true });
  const stop = new AbortController();
  const abort = (): void => stop.abort();
  io.signal.addEventListener('abort', abort, { once: true });
  if (io.signal.aborted) abort();
  const ran = operator.run(stop.signal);
  try {
    const exitCode = await showUntilReady(context, localSession(operator, store.url), paths, operator.state, options.until === 'ready');
    if (options.until === 'ready' || exitCode !== exitCodes.ok) return exitCode;
    if (!io.signal.aborted) io.write(whatToTry(paths, listen));
    await aborted(io.signal);
    return exitCodes.ok;
  } finally {
    io.signal.removeEventListener('abort', abort);
    if (io.signal.aborted) io.writeError('stopping: what runs is taken down, what is declared stays (again to stop at once)\n');
    stop.abort();
    await ran;
  }
}

async function applyBeside(context: CommandContext, beside: Session, paths: readonly string[]): Promise<number> {
  await using session = beside;
  context.io.write(`an operator is running here already (process ${session.control?.info.pid ?? 'unknown'}); applying there\n`);
  return await showUntilReady(context, session, paths, session.state);
}

/**
 * A stack that is on its way out, as its operator was stopped before its end, is waited for: this operator may be the only one that
 * takes it down, and it cannot be applied before.
 */
async function waitForEnds(context: CommandContext, session: Session, files: readonly FileResource[]): Promise<void> {
  const end = context.environment.elapsed() + (timeoutMs(context, endsWithinMs) ?? endsWithinMs);
  for (const { resource } of files) {
    const { metadata } = resource;
    if (metadata.type !== stackDefinition.type) continue;
    const there = await session.state.get(metadata).catch((error: unknown) => {
      if (isNotFoundError(error)) return undefined;
      throw error;
    });
    if (there?.metadata.phase !== 'tearingDown') continue;
    context.io.writeError(`${shownName(metadata)} is still being deleted; waiting for its end\n`);
    await waitDestroyed(context, session, there.metadata, Math.max(0, end - context.environment.elapsed()));
  }
}

/** The operator that answers at the socket of this folder. */
async function running(context: CommandContext): Promise<Session | undefined> {
  if (context.options.store !== undefined) return undefined;
  const { io, environment } = context;
  if ((await environment.files.stat(defaultSocket(io.storeDirectory))) === undefined) return undefined;
  try {
    return await connect({ store: `unix:${defaultSocket(io.storeDirectory)}`, io, environment });
  } catch (error) {
    if (isUnavailableError(error)) return undefined;
    throw error;
  }
}

/** The same view as a client has, without the way over the wire. */
function localSession(operator: Operator, url: Session['url']): Session {
  return {
    url,
    state: operator.state,
    control: undefined,
    validate: (resources) => validateLocally(resources),
    readiness: (pointer) => readinessOf(operator.state, pointer),
    [Symbol.asyncDispose]: async () => {},
  };
}

async function showUntilReady(
  context: CommandContext,
  session: Session,
  paths: readonly string[],
  state: State,
  bounded = false,
): Promise<number> {
  const { io, environment } = context;
  const types = await TypesLookup.read(session.state, environment);
  const loaded = await loadResourceFiles(paths, { io, environment, types, namespace: context.options.namespace });
  // The example's data goes with the store, so that removing one folder starts over, wherever this package is installed.
  const files = paths[0] === exampleFile ? loaded.map((file) => ({ ...file, folder: join(io.storeDirectory, storeFolder) })) : loaded;
  await waitForEnds(context, session, files);
  const { exitCode, applied } = await applyAll(
    session,
    files,
    ({ resource, verb }) => io.write(`${shownName(resource.metadata)} ${verb}\n`),
    (text) => io.writeError(`${text}\n`),
  );
  if (exitCode !== exitCodes.ok) return exitCode;
  const stacks = applied.map(({ resource }) => resource.metadata).filter(({ type }) => type === stackDefinition.type);
  const ids = stacks.map(({ id }) => id);
  using limit = deadline(context, timeoutMs(context, bounded ? 120_000 : undefined));
  await using view = new LiveView(context, session, {
    types,
    subjects: stacks.map((pointer) => ({ pointer })),
    tell: (line) => io.write(line),
  });
  await Promise.race([view.ready(), aborted(limit.signal)]);
  const { waiting } = view;
  await view[Symbol.asyncDispose]();
  if (limit.expired()) {
    const reasons = waiting.map(({ pointer, reason }) => `  ${visibleText(pointer.id)}: ${visibleText(reason)}\n`);
    io.writeError(`not ready in time:\n${reasons.join('')}`);
    return exitCodes.timedOut;
  }
  if (waiting.length === 0) {
    io.write(`ready: ${ids.map(visibleText).join(', ')}\n`);
    for (const { id, namespace } of stacks)
      io.write((await addresses(state, id, namespace)).map((line) => `  ${visibleText(line)}\n`).join(''));
  }
  return exitCodes.ok;
}

/** Where the services of a stack answer, as far as their checks tell. */
async function addresses(state: State, id: string, namespace: string): Promise<readonly string[]> {
  const { spec } = await state.get(stackDefinition.pointer(id, namespace));
  const { ports = {} } = ((await state.get(stackStatusDefinition.pointer(id, namespace))).spec.extra ?? {}) as StackExtra;
  return Object.entries(spec.services).flatMap(([name, { ready }]) => {
    const url = ready?.http?.replace(/\$\{port:([^}]+)\}/g, (_all, port: string) => String(ports[port] ?? ''));
    const origin = /^https?:\/\/[^/]+/.exec(url ?? '')?.[0];
    return origin === undefined ? [] : [`${name}: ${origin}/`];
  });
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) return resolve();
    signal.addEventListener('abort', () => resolve(), { once: true });
  });
}

function whatToTry(paths: readonly string[], listen: string): string {
  const example = paths[0] === exampleFile;
  return `
In another terminal, in this folder:
  npx steadystate get stacks
  npx steadystate get processes -w
  npx steadystate logs ${example ? 'shop' : 'STACK'} -f
  npx steadystate why stack ${example ? 'shop' : 'STACK'}
  npx steadystate delete stack ${example ? 'shop' : 'STACK'} --wait
Ctrl-C stops what runs and keeps what is declared; to start over: rm -r .steadystate
(serving ${listen})
`;
}
