import type { Environment } from '../environment/index.ts';
import { find } from './companion.ts';
import type { ProcessSpec, ProcessStatus } from './process-definition.ts';
import { processStatusDefinition } from './process-definition.ts';
import type { Visit } from './process-visit.ts';

type Wait = Pick<ProcessStatus, 'reason' | 'message'>;

/** What a start has to wait for; `undefined`: nothing. */
export async function whyToWait(environment: Environment, visit: Visit): Promise<Wait | undefined> {
  return (await unready(visit)) ?? (await takenPort(environment, visit.spec));
}

/** Those before it that are not ready; only for a first start, never after a crash. */
async function unready({ context, spec, slot }: Visit): Promise<Wait | undefined> {
  if (slot.settled || spec.after === undefined) return undefined;
  const unready: string[] = [];
  for (const id of spec.after) {
    const status = await find(context, processStatusDefinition.pointer(id, slot.pointer.namespace));
    if (status?.spec.ready !== true) unready.push(id);
  }
  return unready.length === 0 ? undefined : { reason: 'WaitingForProcess', message: `waits for ${unready.join(', ')} to be ready` };
}

async function takenPort({ network }: Environment, spec: ProcessSpec): Promise<Wait | undefined> {
  for (const [name, port] of Object.entries(spec.ports ?? {})) {
    if (await network.portFree(port)) continue;
    return {
      reason: 'PortTaken',
      message: `port ${port}, kept for \${port:${name}}, is in use by another program; end that program, or delete the stack and apply it again for another port`,
    };
  }
  return undefined;
}
