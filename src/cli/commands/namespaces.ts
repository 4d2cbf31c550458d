import { namespaceDefinition } from '../../resource/index.ts';
import type { CommandContext } from '../context.ts';
import { getCommand } from './get.ts';

/** `namespaces` */
export async function namespacesCommand(context: CommandContext): Promise<number> {
  return getCommand({ ...context, options: { ...context.options, namespace: 'meta' } }, namespaceDefinition.type, [], {});
}
