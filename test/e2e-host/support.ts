import { mkdtemp, realpath, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, vi } from 'vitest';
import { memoryState } from '../../src/backends/memory/index.ts';
import type { Environment, Logger } from '../../src/environment/index.ts';
import { nodeEnvironment } from '../../src/environment/index.ts';
import type { HostOperatorOptions, ProcessStatus, StackInput } from '../../src/host/index.ts';
import {
  baseDirectoryAnnotation,
  fileDefinition,
  hostDefinitions,
  hostGroup,
  hostOperator,
  processStatusDefinition,
  stackDefinition,
  stackStatusDefinition,
} from '../../src/host/index.ts';
import type { Resource, ResourceDefinition } from '../../src/resource/index.ts';
import { DefinitionRegistry, digest } from '../../src/resource/index.ts';
import type { Runtime } from '../../src/runtime/index.ts';
import { anyNamespace, createRuntime, destroyController, inputsIn } from '../../src/runtime/index.ts';
import type { CoreState, State } from '../../src/state/index.ts';
import { listNamespaces, validated, wrapCore } from '../../src/state/index.ts';
import type { CompanionSpec } from '../../src/workload/index.ts';

export interface Store {
  open(environment: Environment): Promise<CoreState & AsyncDisposable>;
}

export const memoryStore: Store = { open: async (environment) => memoryState({ environment }) };

/** One operator over a store in a folder of its own. */
export interface Host extends AsyncDisposable {
  readonly environment: Environment;
  readonly state: State;
  /** The store without the operator's schemas. */
  readonly raw: State;
  readonly runtime: Runtime;
  /** Where the stacks live. */
  readonly folder: string;
  readonly log: string[];
  apply(id: string, spec: StackInput, more?: { readonly annotations?: Readonly<Record<string, string>> }): Promise<Resource>;
  remove(id: string): Promise<void>;
  /** Stops the operator, and leaves the store open. */
  stop(): Promise<void>;
  /** Starts another operator over the same store. */
  startAgain(options?: Partial<HostOperatorOptions>): Promise<void>;
  status(id: string): Promise<ProcessStatus>;
  stackStatus(id: string): Promise<CompanionSpec>;
  /** Waits until the status of a process is as asked. */
  until(id: string, condition: (status: ProcessStatus) => boolean, what?: string): Promise<ProcessStatus>;
  untilStack(id: string, condition: (status: CompanionSpec) => boolean, what?: string): Promise<CompanionSpec>;
  untilReady(id: string): Promise<CompanionSpec>;
}

/** How a stack writes a port. */
export const port = (name: string): string => `\${port:${name}}`;

/** Longest that anything here is waited for. All of it takes moments; a machine that is busy with other things takes longer. */
const patienceMs = 40_000;
vi.setConfig({ testTimeout: 60_000 });

export async function startHost(options: Partial<HostOperatorOptions> & { readonly store?: Store } = {}): Promise<Host> {
  const { store = memoryStore, ...operatorOptions } = options;
  const log: string[] = [];
  const environment = nodeEnvironment({ log: recordingLog(log) });
  const folder = await realpath(await mkdtemp(join(tmpdir(), 'host-')));
  const opened = await store.open(environment);
  let running: { readonly runtime: Runtime; readonly stop: AbortController; readonly ended: Promise<void> } | undefined;
  const raw = wrapCore(opened, { environment });
  let state: State = wrapCore(opened, { environment });

  const start = async (more: Partial<HostOperatorOptions>): Promise<void> => {
    const operator = hostOperator({ environment, pollMs: 200, ...operatorOptions, ...more });
    const core = validated(opened, new DefinitionRegistry(operator.definitions));
    state = wrapCore(core, { environment });
    const runtime = createRuntime({ state: core, environment });
    await operator.prepare(state);
    operator.register(runtime);
    runtime.register(destroyController(inputsIn(anyNamespace, stackDefinition.type, 'primary')));
    const stop = new AbortController();
    running = { runtime, stop, ended: runtime.run(stop.signal) };
    await runtime.synced();
  };
  const stop = async (): Promise<void> => {
    running?.stop.abort();
    await running?.ended;
    running = undefined;
  };
  await start({});

  const host: Host = {
    environment,
    get state() {
      return state;
    },
    raw,
    get runtime() {
      if (running === undefined) throw new Error('the operator is stopped');
      return running.runtime;
    },
    folder,
    log,
    apply(id, spec, { annotations = {} } = {}) {
      const stack = stackDefinition.create({ id, spec, annotations: { [baseDirectoryAnnotation]: folder, ...annotations } });
      return state.modifyWithResult(stack, (draft) => {
        draft.spec = stack.spec;
        draft.annotations.replace(stack.metadata.annotations);
      });
    },
    async remove(id) {
      await withPatience(`stack ${id} to be gone`, host, (signal) => state.teardownAndDestroy(stackDefinition.pointer(id), { signal }));
    },
    stop,
    startAgain: (more = {}) => start(more),
    status: async (id) => (await state.get(processStatusDefinition.pointer(id))).spec,
    stackStatus: async (id) => (await state.get(stackStatusDefinition.pointer(id))).spec,
    until: (id, condition, what = 'as awaited') => untilSpec(host, processStatusDefinition, id, condition, what),
    untilStack: (id, condition, what = 'as awaited') => untilSpec(host, stackStatusDefinition, id, condition, what),
    untilReady: async (id) => {
      const { metadata, spec } = await state.get(stackDefinition.pointer(id));
      // Ready as it is now, not as it was before the last change.
      return untilSpec(
        host,
        stackStatusDefinition,
        id,
        (status) => isReady(status) && status.specDigest === digest([digest(spec), metadata.phase]) && settled(status, metadata),
        'ready',
      );
    },
    async [Symbol.asyncDispose]() {
      await stop();
      await opened[Symbol.asyncDispose]();
      await rm(folder, { recursive: true, force: true });
      expect(environment.open.counts(), 'nothing may be left open').toEqual({});
    },
  };
  return host;
}

export function isReady(status: CompanionSpec): boolean {
  return condition(status, 'Ready')?.status === 'True';
}

export function condition(status: CompanionSpec, type: string): CompanionSpec['conditions'][number] | undefined {
  return status.conditions.find((candidate) => candidate.type === type);
}

/** Annotations do not count as a change of generation; the version does. */
function settled(status: CompanionSpec, metadata: { readonly version: string }): boolean {
  return Number(status.observedVersion) >= Number(metadata.version) || status.observedVersion === undefined;
}

async function untilSpec<Spec>(
  host: Host,
  definition: ResourceDefinition<Spec>,
  id: string,
  holds: (spec: Spec) => boolean,
  what: string,
): Promise<Spec> {
  const pointer = definition.pointer(id);
  const found = await withPatience(`${definition.displayType} ${id} to be ${what}`, host, (signal) =>
    host.state.watchFor(pointer, { condition: (resource) => holds(resource.spec) }, { signal }),
  );
  return found.spec;
}

/** Fails with what there is instead of hanging. */
export async function withPatience<Value>(what: string, host: Host, work: (signal: AbortSignal) => Promise<Value>): Promise<Value> {
  const signal = AbortSignal.timeout(patienceMs);
  try {
    return await work(signal);
  } catch (error) {
    if (!signal.aborted) throw error;
    throw new Error(`gave up waiting for ${what}; there is\n${await describeAll(host)}\nlog\n${host.log.slice(-30).join('\n')}`);
  }
}

export async function describeAll(host: Host): Promise<string> {
  const lines: string[] = [];
  for (const definition of hostDefinitions) {
    if (definition.type === fileDefinition.type) continue;
    for (const { metadata, spec } of await allOf(host, definition.type)) {
      lines.push(
        `${definition.displayType} ${metadata.namespace}/${metadata.id} ${metadata.phase} ${metadata.finalizers.join()} ${JSON.stringify(spec)}`,
      );
    }
  }
  return lines.join('\n');
}

async function allOf(host: Host, type: string): Promise<readonly Resource[]> {
  const found: Resource[] = [];
  for (const namespace of await listNamespaces(host.state, type)) found.push(...(await host.state.list({ namespace, type })).items);
  return found;
}

/** Ids of everything of the host operator that there is. */
export async function everything(host: Host): Promise<readonly string[]> {
  const found: string[] = [];
  for (const { type, displayType } of hostDefinitions) {
    if (!type.endsWith(`.${hostGroup}`)) continue;
    for (const { metadata } of await allOf(host, type)) found.push(`${displayType} ${metadata.id}`);
  }
  return found;
}

export function alive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

/** Asks again and again, a little later each time, for what has no event. */
export async function eventually<Value>(
  host: Host,
  what: string,
  look: () => Promise<Value | undefined> | Value | undefined,
): Promise<Value> {
  return withPatience(what, host, async (signal) => {
    for (;;) {
      const found = await look();
      if (found !== undefined && found !== false) return found;
      await host.environment.sleep(10, signal);
    }
  });
}

function recordingLog(lines: string[], fields: Readonly<Record<string, unknown>> = {}): Logger {
  return {
    log: (level, message, more) => void lines.push(`${level} ${message} ${text({ ...fields, ...more })}`),
    with: (more) => recordingLog(lines, { ...fields, ...more }),
  };
}

function text(fields: Readonly<Record<string, unknown>>): string {
  return Object.entries(fields)
    .map(([key, value]) => `${key}=${value instanceof Error ? value.message : JSON.stringify(value)}`)
    .join(' ');
}
