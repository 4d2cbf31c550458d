import { posix } from 'node:path';
import type { Environment } from '../environment/index.ts';
import { isInvalidError } from '../resource/index.ts';
import type { HandlerFunc, PhaseAnswer, ReconcileRequest, Reconciler, WorkloadDefinition } from '../workload/index.ts';
import {
  checkReadyPhase,
  childName,
  completePhase,
  createRegistry,
  createResourcesPhase,
  defineWorkload,
  deleteResourcesPhase,
  deletionCompletePhase,
  kindOfType,
  terminalError,
  withCustomRequeueResult,
} from '../workload/index.ts';
import { directoryDefinition, fileDefinition } from './file-definitions.ts';
import { baseDirectoryAnnotation } from './names.ts';
import { processDefinition } from './process-definition.ts';
import { stackChildren, stackPorts } from './stack-children.ts';
import type { StackInput, StackSpec } from './stack-definition.ts';
import { stackDefinition, stackStatusDefinition } from './stack-definition.ts';

/** What a stack keeps for its whole life. */
export interface StackExtra {
  /** Where it lives, resolved once. */
  readonly directory?: { readonly declared: string; readonly path: string };
  /** The ports that it was given, by name. */
  readonly ports?: Readonly<Record<string, number>>;
}

export interface StackWorkloadOptions {
  readonly environment: Environment;
  /** What a relative `directory` is relative to when the stack does not say. */
  readonly directory?: string | undefined;
}

/** Ports are taken from here: below what systems hand out to outgoing connections, so that a kept one stays free. */
const firstPort = 15_000;
const lastPort = 31_999;
const portTries = 200;
/** So many names of what is left behind are told. */
const leftoversTold = 20;

/** The workload that turns a stack into folders, files and processes. */
export function stackWorkload(options: StackWorkloadOptions): WorkloadDefinition<StackSpec, StackInput> {
  const phases = createRegistry();
  const apply = applyPhases();
  const soon = withCustomRequeueResult({ requeueAfterMs: 5_000 });
  for (const event of ['create', 'update'] as const) {
    phases.register('Dependencies', dependenciesPhase(options), event);
    phases.register('Files', apply.files, event);
    phases.register('Processes', apply.processes, event);
    phases.register('Check-Ready', checkReadyPhase, event, soon);
    phases.register('Complete', completePhase, event);
  }
  phases.register('Delete-Resources', deleteResourcesPhase, 'delete');
  phases.register('Deletion-Complete', tellLeftovers(options.environment), 'delete');
  return defineWorkload<StackSpec, StackInput>({
    definition: stackDefinition,
    children: [directoryDefinition, fileDefinition, processDefinition] as never,
    phases,
    getResources: ({ namespace, name, annotations, spec, extra }) => {
      const checked = checkedSpec(spec);
      const { directory, ports = {} } = extra as StackExtra;
      const path = directory?.path ?? resolveDirectory(checked, annotations, options.directory);
      return stackChildren({ namespace, name, annotations, spec: checked, directory: path, ports });
    },
  });
}

/** A stack that was written past its schema is told what is wrong; what runs goes on. */
function checkedSpec(spec: unknown): StackSpec {
  try {
    return stackDefinition.validate(spec);
  } catch (error) {
    if (isInvalidError(error)) throw terminalError('InvalidWorkload', (error as Error).message, error);
    throw error;
  }
}

/** Settles what children are computed from: the directory, and a port for each name. On record before anything uses it. */
function dependenciesPhase(options: StackWorkloadOptions): HandlerFunc {
  return async (reconciler, request) => {
    const { status, workload } = request;
    const spec = checkedSpec(workload.spec);
    const extra = status.extra as StackExtra;
    const directory = settleDirectory(extra, resolveDirectory(spec, workload.annotations, options.directory), spec);
    const ports = await settlePorts(options, reconciler, request, spec, extra.ports ?? {});
    if (directory === extra.directory && ports === extra.ports) return true;
    status.extra.directory = directory;
    status.extra.ports = ports;
    const next = status.writeAhead();
    request.workload = await reconciler.port.writeStatus(workload, next, { signal: request.signal });
    status.markWritten(next);
    return true;
  };
}

function resolveDirectory({ directory }: StackSpec, annotations: Readonly<Record<string, string>>, otherwise: string | undefined): string {
  if (posix.isAbsolute(directory)) return withoutSlash(posix.normalize(directory));
  const base = annotations[baseDirectoryAnnotation] ?? otherwise;
  if (base === undefined || !posix.isAbsolute(base)) {
    throw terminalError(
      'NoBaseDirectory',
      `spec.directory: ${directory} is relative, and the annotation ${baseDirectoryAnnotation} ${base === undefined ? 'is missing' : `is no absolute folder: ${base}`}; write an absolute path, or set it to the folder of the file that declares the stack`,
    );
  }
  return withoutSlash(posix.resolve(base, directory));
}

function withoutSlash(path: string): string {
  return path.length > 1 && path.endsWith('/') ? path.slice(0, -1) : path;
}

/** The directory is resolved once. Another one would leave behind what the services wrote, so it is refused. */
function settleDirectory(extra: StackExtra, resolved: string, spec: StackSpec): NonNullable<StackExtra['directory']> {
  const before = extra.directory;
  if (before === undefined) return { declared: spec.directory, path: resolved };
  if (before.declared === spec.directory) return before;
  if (before.path === resolved) return { declared: spec.directory, path: resolved };
  throw terminalError(
    'DirectoryChanged',
    `spec.directory: the stack lives in ${before.path} and cannot move to ${resolved}, because what its services wrote would stay behind; set it back to ${before.declared}, or delete the stack and apply it again`,
  );
}

/** A free port for each new name. One that was given is kept, also when nobody names it any more. */
async function settlePorts(
  options: StackWorkloadOptions,
  reconciler: Reconciler,
  request: ReconcileRequest,
  spec: StackSpec,
  before: Readonly<Record<string, number>>,
): Promise<Readonly<Record<string, number>>> {
  const missing = stackPorts(spec).filter((name) => before[name] === undefined);
  if (missing.length === 0) return before;
  const taken = new Set(Object.values(before));
  for (const port of await portsOfOthers(reconciler, request)) taken.add(port);
  const ports: Record<string, number> = { ...before };
  for (const name of missing) {
    const port = await freePort(options.environment, taken);
    taken.add(port);
    ports[name] = port;
  }
  return ports;
}

/** Of all stacks of this machine, in whatever namespace. */
async function portsOfOthers(reconciler: Reconciler, { signal }: ReconcileRequest): Promise<readonly number[]> {
  const ports: number[] = [];
  for (const { body } of await reconciler.port.list(kindOfType(stackStatusDefinition.type), { signal }))
    ports.push(...Object.values((body as { extra?: StackExtra }).extra?.ports ?? {}));
  return ports;
}

async function freePort(environment: Environment, taken: ReadonlySet<number>): Promise<number> {
  for (let tries = 0; tries < portTries; tries++) {
    const port = firstPort + Math.floor(environment.random() * (lastPort - firstPort + 1));
    if (!taken.has(port) && (await environment.network.portFree(port))) return port;
  }
  return environment.network.freePort();
}

/** The last phase of a deletion: what services wrote stays, and is told. */
function tellLeftovers({ files }: Environment): HandlerFunc {
  return async (reconciler, request, phaseOptions) => {
    const path = (request.status.extra as StackExtra).directory?.path;
    const names = path === undefined ? [] : ((await files.list(path)) ?? []);
    if (names.length > 0) {
      const more = names.length > leftoversTold ? ` and ${names.length - leftoversTold} more` : '';
      const note = `left in place in ${path}: ${names.slice(0, leftoversTold).join(', ')}${more}`;
      reconciler.emit({ regarding: request.workload.key, type: 'Normal', reason: 'Deleted', note: note.slice(0, 1024) });
    }
    return deletionCompletePhase(reconciler, request, phaseOptions);
  };
}

/**
 * All children are applied together, each as soon as what it depends on is ready, so that a service that cannot come up
 * holds back nobody but those that need it. The two phases tell the halves of one outcome: first folders and files,
 * then processes.
 */
function applyPhases(): { readonly files: HandlerFunc; readonly processes: HandlerFunc } {
  const outcomes = new WeakMap<ReconcileRequest, () => PhaseAnswer>();
  return {
    async files(reconciler, request) {
      const outcome = await settled(createResourcesPhase(reconciler, request, ['withWait']));
      request.signal.throwIfAborted();
      const waiting: string[] = [];
      for (const child of await request.resources()) {
        if (child.ref.kind === processKind) continue;
        const entry = request.status.child(child.ref);
        // Without an entry not even the write-ahead came about.
        if (entry === undefined) return outcome();
        if (!entry.ready) waiting.push(`${childName(child)}: ${entry.reason}${entry.message === '' ? '' : ` (${entry.message})`}`);
      }
      if (waiting.length > 0) return { proceed: false, reason: 'FilesNotReady', message: waiting.join('; ') };
      outcomes.set(request, outcome);
      return true;
    },
    processes: async (_reconciler, request) => outcomes.get(request)?.() ?? false,
  };
}

const processKind = kindOfType(processDefinition.type).kind;

/** The outcome of something, to be told later: its answer, or its error. */
async function settled(work: Promise<PhaseAnswer>): Promise<() => PhaseAnswer> {
  try {
    const answer = await work;
    return () => answer;
  } catch (error) {
    return () => {
      throw error;
    };
  }
}
