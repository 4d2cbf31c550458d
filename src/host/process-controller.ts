import type { Environment } from '../environment/index.ts';
import type { Namespaces, QueueController } from '../runtime/index.ts';
import { inputsIn } from '../runtime/index.ts';
import { wakeAbandoned } from './companion.ts';
import { processesController } from './names.ts';
import type { RotationOptions } from './output-file.ts';
import { processDefinition, processStatusDefinition } from './process-definition.ts';
import { ProcessKeeper } from './process-keeper.ts';

export interface ProcessControllerOptions {
  readonly environment: Environment;
  readonly namespaces: Namespaces;
  /** Whether processes end with this program, or go on and are adopted by the next one. */
  readonly onShutdown: 'stop' | 'leave';
  readonly output: RotationOptions;
  /** How often outputs are looked at for their length, milliseconds. */
  readonly rotateEveryMs: number;
}

/** Keeps declared processes running. */
export function processController(options: ProcessControllerOptions): QueueController {
  const keeper = new ProcessKeeper(options);
  return {
    name: processesController,
    // A reconcile waits for nothing but the store and short system calls, but there are many of them.
    concurrency: 16,
    inputs: inputsIn(options.namespaces, processDefinition.type, 'primary'),
    outputs: [{ type: processStatusDefinition.type, kind: 'exclusive' }],
    reconcile: (context, { pointer }) => keeper.reconcile(context, pointer),
    async run(context) {
      keeper.start(context.wake);
      await wakeAbandoned(context, options.namespaces, processDefinition, processStatusDefinition);
      for (;;) {
        await options.environment.sleep(options.rotateEveryMs, context.signal);
        await keeper.rotateOutputs(context.log);
      }
    },
    shutdown: (context) => keeper.shutDown(context),
  };
}
