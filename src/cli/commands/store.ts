import { resolve } from 'node:path';
import { repairStore, restoreStore } from '../../backends/sqlite/index.ts';
import { visibleText } from '../../resource/index.ts';
import type { StoreFinding, StoreProgress } from '../../state/index.ts';
import type { CommandContext } from '../context.ts';
import { deadline, timeoutMs } from '../context.ts';
import { ExitError, exitCodes, UsageError } from '../exit-codes.ts';
import { parseDuration } from '../output/age.ts';
import { jsonText } from '../output/format.ts';
import type { Progress } from '../progress.ts';
import { withProgress } from '../progress.ts';
import type { StoreTarget } from '../store-target.ts';
import { adminOf, fileOf, makeFolder, withStoreTarget } from '../store-target.ts';

export const storeVerbs = ['check', 'repair', 'compact', 'backup', 'restore', 'export', 'import'] as const;
export type StoreVerb = (typeof storeVerbs)[number];

export interface StoreOptions {
  readonly quick?: boolean;
  readonly force?: boolean;
  readonly keep?: string;
  readonly olderThan?: string;
}

/** What a verb works with. */
export interface StoreTask {
  readonly signal: AbortSignal;
  readonly onProgress: (progress: StoreProgress) => void;
}

/** Options that belong to some verbs only. */
const optionsOf: Readonly<Record<StoreVerb, readonly (keyof StoreOptions)[]>> = {
  check: ['quick'],
  repair: [],
  compact: ['keep', 'olderThan'],
  backup: ['force'],
  restore: [],
  export: ['force'],
  import: [],
};
const takesFile: Readonly<Record<StoreVerb, 'none' | 'needed' | 'may'>> = {
  check: 'none',
  repair: 'none',
  compact: 'none',
  backup: 'needed',
  restore: 'needed',
  export: 'may',
  import: 'needed',
};

/** `store VERB [FILE]` */
export async function storeCommand(
  context: CommandContext,
  given: string,
  file: string | undefined,
  options: StoreOptions,
): Promise<number> {
  const verb = storeVerbs.find((each) => each === given);
  if (verb === undefined) throw new UsageError(`store: expected one of ${storeVerbs.join(', ')}, found ${given}`);
  checkUse(context, verb, file, options);
  const { io } = context;
  const path = file === undefined ? '' : resolve(io.directory, file);
  switch (verb) {
    case 'check':
      return withStoreTarget(context, (target) => check(context, target, options));
    case 'repair':
      return withStoreTarget(context, (target) => repair(context, target));
    case 'compact':
      return withStoreTarget(context, (target) => compact(context, target, options));
    case 'backup':
      return withStoreTarget(context, (target) => backup(context, target, path, options));
    case 'restore':
      return withStoreTarget(context, (target) => restore(context, target, path));
    case 'export': {
      const { exportCommand } = await import('./store-export.ts');
      return withStoreTarget(context, (target) =>
        exportCommand(context, target, file === undefined || file === '-' ? undefined : path, options),
      );
    }
    case 'import': {
      const { importCommand } = await import('./store-import.ts');
      return withStoreTarget(context, (target) => importCommand(context, target, file === '-' ? '-' : path));
    }
  }
}

async function check(context: CommandContext, target: StoreTarget, { quick = false }: StoreOptions): Promise<number> {
  const admin = await adminOf(target, context);
  const found = await long(context, 'checking the store', (task) => admin.check({ quick, ...task }));
  const { findings, more, resources, events, revision, bytes, freeBytes } = found;
  tell(context, found, () => [
    ...lines(findings, more),
    `${resources} resources and ${events} events are intact; revision ${revision}, ${sizeText(bytes)}, of that ${sizeText(freeBytes)} free`,
  ]);
  if (findings.length === 0) return exitCodes.ok;
  const count = findings.length + more;
  context.io.writeError(
    `${count} ${count === 1 ? 'thing is' : 'things are'} wrong with the store; restore a backup (steadystate store restore FILE), or keep what is intact (steadystate store repair)\n`,
  );
  return exitCodes.failed;
}

async function repair(context: CommandContext, target: StoreTarget): Promise<number> {
  const file = fileOf(target, 'repair it');
  const admin = await adminOf(target, context);
  // What is right is left alone: a repair ends the bookmarks of all watches.
  const { findings } = await long(context, 'checking the store', (task) => admin.check(task));
  if (findings.length === 0) {
    context.io.write('nothing is wrong with the store, and nothing was changed\n');
    return exitCodes.ok;
  }
  const done = await long(context, 'repairing the store', (task) => repairStore({ file, environment: context.environment, ...task }));
  const { kept, resources, recovered, dropped, more, lost } = done;
  tell(context, done, () => [
    ...lines(dropped, more),
    ...(lost > 0 ? [`${lost} more resources are lost; nothing tells their names`] : []),
    `${resources} resources are kept${recovered > 0 ? `, ${recovered} of them from pages that nothing led to` : ''}; the event log begins anew`,
    `the damaged file is kept as ${kept}`,
  ]);
  return exitCodes.ok;
}

async function compact(context: CommandContext, target: StoreTarget, { keep, olderThan }: StoreOptions): Promise<number> {
  const olderThanMs = olderThan === undefined ? undefined : parseDuration(olderThan);
  if (olderThan !== undefined && olderThanMs === undefined)
    throw new UsageError(`--older-than: expected a duration such as 30m or 7d, found ${olderThan}`);
  if (keep !== undefined && !/^[0-9]{1,15}$/.test(keep)) throw new UsageError(`--keep: expected a number of events, found ${keep}`);
  const admin = await adminOf(target, context);
  const done = await long(context, 'compacting the store', (task) =>
    admin.compact({ ...(keep !== undefined && { keep: Number(keep) }), ...(olderThanMs !== undefined && { olderThanMs }), ...task }),
  );
  tell(context, done, () => [
    `dropped ${done.forgotten} events; bookmarks from before revision ${done.floor} have expired`,
    `the file has ${sizeText(done.bytesAfter)}, it had ${sizeText(done.bytesBefore)}`,
  ]);
  return exitCodes.ok;
}

async function backup(context: CommandContext, target: StoreTarget, file: string, { force = false }: StoreOptions): Promise<number> {
  const admin = await adminOf(target, context);
  const done = await long(context, 'backing up the store', (task) => admin.backup(file, { force, ...task }));
  tell(context, done, () => [`${done.file}: ${done.resources} resources at revision ${done.revision}, ${sizeText(done.bytes)}`]);
  return exitCodes.ok;
}

async function restore(context: CommandContext, target: StoreTarget, file: string): Promise<number> {
  const store = fileOf(target, 'restore the backup');
  if ((await context.environment.files.stat(file)) === undefined)
    throw new ExitError(exitCodes.notFound, `the backup ${file} does not exist`);
  await makeFolder(context, store);
  const done = await long(context, 'restoring the store', (task) =>
    restoreStore({ file: store, backup: file, environment: context.environment, ...task }),
  );
  tell(context, done, () => [
    `${done.file}: ${done.resources} resources; it goes on from revision ${done.revision}`,
    ...(done.replaced === undefined ? [] : [`the store that was there before is kept as ${done.replaced}`]),
  ]);
  return exitCodes.ok;
}

/**
 * Runs a work under progress, `--timeout` and Ctrl-C: both end it between two steps, and it says so. `soFar` tells what stays of
 * a work that is not taken back.
 */
export async function long<Value>(
  context: CommandContext,
  what: string,
  work: (task: StoreTask) => Promise<Value>,
  soFar?: () => string,
): Promise<Value> {
  using limit = deadline(context, timeoutMs(context, undefined));
  const { signal } = limit;
  return await withProgress(context, what, async (progress) => {
    try {
      return await work({ signal, onProgress: (at) => showAt(progress, at) });
    } catch (error) {
      if (!signal.aborted) throw error;
      if (limit.expired())
        throw new ExitError(
          exitCodes.timedOut,
          `${what}: the time ran out; ${soFar?.() ?? 'what was done so far was taken back or stands as it is'}, the store is whole`,
        );
      throw new ExitError(exitCodes.interrupted, `${what}: interrupted; ${soFar === undefined ? '' : `${soFar()}, `}the store is whole`);
    }
  });
}

function showAt(progress: Progress, { step, done, total }: StoreProgress): void {
  const of = total > 0 ? ` ${done.toLocaleString('en')} of ${total.toLocaleString('en')}` : '';
  progress.at(`${step}${of}`);
}

/** The result, as `-o` asks. */
export function tell({ io, options }: CommandContext, result: object, text: () => readonly string[]): void {
  if (options.output === 'json') io.write(`${jsonText(result)}\n`);
  else for (const line of text()) io.write(`${visibleText(line)}\n`);
}

function lines(findings: readonly StoreFinding[], more: number): readonly string[] {
  return [...findings.map(({ place, message }) => `${place}: ${message}`), ...(more > 0 ? [`and ${more} more`] : [])];
}

export function sizeText(bytes: number): string {
  if (bytes < 1024 * 1024) return `${Math.ceil(bytes / 1024)} KiB`;
  return `${(bytes / 1024 / 1024).toFixed(1)} MiB`;
}

const flags: Readonly<Record<keyof StoreOptions, string>> = {
  quick: '--quick',
  force: '--force',
  keep: '--keep',
  olderThan: '--older-than',
};

function checkUse({ options: global }: CommandContext, verb: StoreVerb, file: string | undefined, options: StoreOptions): void {
  if (takesFile[verb] === 'none' && file !== undefined) throw new UsageError(`store ${verb} takes no file; the store is named by --store`);
  if (takesFile[verb] === 'needed' && file === undefined)
    throw new UsageError(`store ${verb} needs a file: steadystate store ${verb} FILE`);
  for (const [name, flag] of Object.entries(flags) as [keyof StoreOptions, string][])
    if (options[name] !== undefined && !optionsOf[verb].includes(name)) throw new UsageError(`${flag} does not belong to store ${verb}`);
  if (verb === 'export' || global.output === undefined || global.output === 'table' || global.output === 'json') return;
  throw new UsageError(`store ${verb} prints table or json, found ${global.output}`);
}
