import type { Pointer, Resource } from '../resource/index.ts';
import { nameProblem, pointerText, SteadystateError, visibleText } from '../resource/index.ts';
import type { CommandContext } from './context.ts';
import { UsageError } from './exit-codes.ts';
import type { Session } from './session.ts';
import { TypesLookup } from './types-lookup.ts';

/** What `TYPE ID` of a command line stands for. */
export interface Target {
  readonly types: TypesLookup;
  readonly pointer: Pointer;
}

export async function targetOf(context: CommandContext, session: Session, typeName: string, id: string): Promise<Target> {
  const types = await TypesLookup.read(session.state, context.environment);
  return { types, pointer: typedPointer(types, typeName, id, context.options.namespace) };
}

/** A resource by what a person typed; without a namespace, in that of its type. */
export function typedPointer(types: TypesLookup, typeName: string, id: string, namespace: string | undefined): Pointer {
  const type = types.find(typeName);
  const problem = nameProblem(id);
  if (problem !== undefined) throw new UsageError(`ID: ${problem}`);
  return { namespace: namespace ?? type.defaultNamespace, type: type.type, id };
}

/** What a controller owns is changed by changing what it is made from. */
export function refuseOwned({ metadata }: Pick<Resource, 'metadata'>): void {
  if (metadata.owner === '') return;
  throw new SteadystateError(
    'Conflict',
    `${pointerText(metadata)} is owned by the controller ${visibleText(metadata.owner)}; change what it is made from instead`,
    { reason: 'owner', pointer: metadata },
  );
}
