import type { AnyResourceDefinition } from '../resource/index.ts';
import { describeDefinition, metaNamespace, namespaceDefinition, sameValue } from '../resource/index.ts';
import type { State } from './state.ts';

/**
 * Keeps definitions, and the namespaces that they name, as resources in namespace `meta`, so that every client finds
 * types, aliases, columns and sensitivity. Writes only what differs.
 */
export async function registerDefinitions(state: State, definitions: Iterable<AnyResourceDefinition>): Promise<void> {
  const namespaces = new Set([metaNamespace]);
  for (const definition of definitions) {
    namespaces.add(definition.defaultNamespace);
    const described = describeDefinition(definition);
    await state.modify(described, (draft) => {
      if (!sameValue(draft.spec, described.spec)) draft.spec = described.spec;
    });
  }
  for (const name of namespaces) {
    await state.modify(namespaceDefinition.create({ id: name, spec: { description: '' } }), () => {});
  }
}
