import type { Environment } from '../environment/index.ts';
import type { ResourceDefinition } from '../resource/index.ts';
import { SteadystateError } from '../resource/index.ts';
import type { Namespaces, Runtime } from '../runtime/index.ts';
import { anyNamespace } from '../runtime/index.ts';
import type { State } from '../state/index.ts';
import type { WorkloadEvent } from '../workload/index.ts';
import { embeddedWorkloadController, eventDefinition } from '../workload/index.ts';
import type { Leftovers } from './directory-controller.ts';
import { directoryController } from './directory-controller.ts';
import { fileController } from './file-controller.ts';
import { directoryDefinition, directoryStatusDefinition, fileDefinition, fileStatusDefinition } from './file-definitions.ts';
import { stacksController } from './names.ts';
import { processController } from './process-controller.ts';
import { processDefinition, processStatusDefinition } from './process-definition.ts';
import { stackDefinition, stackStatusDefinition } from './stack-definition.ts';
import { distrustReadiness, tellStopped } from './stack-readiness.ts';
import { stackWorkload } from './stack-workload.ts';

export interface HostOperatorOptions {
  readonly environment: Environment;
  /** What a relative `directory` of a stack is relative to when the stack itself does not say. Absolute. */
  readonly directory?: string;
  /** Where stacks are looked after. @default every namespace, also those that come later */
  readonly namespaces?: Namespaces;
  /**
   * Whether the processes end with the operator (gracefully, the last started first), or go on and are adopted by the
   * next one. A killed operator always leaves them. @default 'stop'
   */
  readonly onShutdown?: 'stop' | 'leave';
  /** How often files, folders and the length of outputs are looked at although nothing told of a change, milliseconds. @default 10_000 */
  readonly pollMs?: number;
  /** An output longer than this is copied away and cut, bytes. @default 10 MiB */
  readonly maxOutputBytes?: number;
  /** How many earlier outputs are kept. @default 3 */
  readonly keptOutputs?: number;
  /** Told when a folder stays behind because something is in it that was not declared. */
  readonly onLeftovers?: (leftovers: Leftovers) => void;
  /** Told of what happens to stacks, beside the log. */
  readonly onEvent?: (event: WorkloadEvent) => void;
}

/** Types and controllers that look after the files and processes of one machine. */
export interface HostOperator {
  /** For the registry that validates writes, and for `registerDefinitions`. */
  readonly definitions: readonly ResourceDefinition<never, never>[];
  /** Call it before the runtime runs: what an operator before this one left as ready is asked again. */
  prepare(state: State): Promise<void>;
  register(runtime: Runtime): void;
}

/** All types of the host operator, and the events that it records. */
export const hostDefinitions = [
  stackDefinition,
  stackStatusDefinition,
  directoryDefinition,
  directoryStatusDefinition,
  fileDefinition,
  fileStatusDefinition,
  processDefinition,
  processStatusDefinition,
  eventDefinition,
] as unknown as readonly ResourceDefinition<never, never>[];

/** The operator for the services of one machine. Unsupported on Windows. */
export function hostOperator(options: HostOperatorOptions): HostOperator {
  if (options.environment.processes.platform === 'win32') {
    throw new SteadystateError(
      'Unsupported',
      'the host operator needs process groups and signals, which Windows does not have; run it on Linux, macOS, or in WSL',
    );
  }
  const { environment, namespaces = anyNamespace, pollMs = 10_000, onShutdown = 'stop', onLeftovers, onEvent } = options;
  const paths = { environment, namespaces, pollMs };
  const output = { maxBytes: options.maxOutputBytes ?? 10 * 1024 * 1024, keep: options.keptOutputs ?? 3 };
  const workload = stackWorkload({ environment, directory: options.directory });
  const stacks = embeddedWorkloadController(workload, { environment, namespaces, name: stacksController, ...(onEvent && { onEvent }) });
  return {
    definitions: hostDefinitions,
    prepare: (state) => distrustReadiness(state, environment, namespaces),
    register(runtime) {
      runtime.register(directoryController({ ...paths, onLeftovers }));
      runtime.register(fileController(paths));
      runtime.register(processController({ environment, namespaces, onShutdown, rotateEveryMs: pollMs / 2, output }));
      runtime.register({
        ...stacks,
        async shutdown(context) {
          await stacks.shutdown?.(context);
          if (onShutdown === 'stop') await tellStopped(context, environment, namespaces);
        },
      });
    },
  };
}
