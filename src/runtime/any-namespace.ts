import { kindText, visibleText } from '../resource/index.ts';
import type { ControllerReader, Input } from './controller.ts';

/** In place of an input's namespace: the type in every namespace that there is, and in those that come later. */
export interface AnyNamespace {
  readonly anyNamespace: true;
}

/** It is no text, so that no name of a namespace can mean it by accident. */
export const anyNamespace: AnyNamespace = Object.freeze({ anyNamespace: true });

export function isAnyNamespace(namespace: string | Namespaces): namespace is AnyNamespace {
  return typeof namespace === 'object' && namespace !== null && 'anyNamespace' in namespace;
}

/** The namespaces that something looks after: these, or all. */
export type Namespaces = readonly string[] | AnyNamespace;

/** One input of a type for each of the namespaces, or one for all of them. */
export function inputsIn<InputKind extends Input['kind']>(
  namespaces: Namespaces,
  type: string,
  kind: InputKind,
): readonly (Input & { readonly kind: InputKind })[] {
  const places = isAnyNamespace(namespaces) ? [namespaces] : namespaces;
  return places.map((namespace) => ({ namespace, type, kind }));
}

/** Where a type has resources, among the namespaces that something looks after. */
export async function namespacesWith(
  reader: Pick<ControllerReader, 'namespaces'>,
  namespaces: Namespaces,
  type: string,
): Promise<readonly string[]> {
  return isAnyNamespace(namespaces) ? reader.namespaces(type) : namespaces;
}

/** The kind of an input, for people. */
export function inputText({ namespace, type }: Pick<Input, 'namespace' | 'type'>): string {
  return isAnyNamespace(namespace) ? `${visibleText(type)} in any namespace` : kindText({ namespace, type });
}
