import type { Resource } from '../../resource/index.ts';
import { visibleText } from '../../resource/index.ts';

/** What `-o name` prints of a resource, with its newline: as it is, for programs. */
export function nameOf({ metadata }: { readonly metadata: Pick<Resource['metadata'], 'type' | 'id'> }): string {
  return `${(metadata.type.split('.')[0] as string).toLowerCase()}/${metadata.id}\n`;
}

/** The name of a resource in a sentence. */
export function shownName(metadata: Pick<Resource['metadata'], 'type' | 'id'>): string {
  return visibleText(nameOf({ metadata }).trimEnd());
}

/** A word of a command that a person may copy: quoted where a shell would read more in it. Ids come from anywhere. */
export function shellWord(text: string): string {
  const shown = visibleText(text);
  return /^[\w./:@%+,][\w./:@%+,=-]*$/.test(shown) ? shown : `'${shown.replaceAll("'", "'\\''")}'`;
}

/** What follows the type in a command that a person may copy: the id, what else it takes, and the namespace where it is not the usual one. */
export function commandWords({ id, namespace }: Pick<Resource['metadata'], 'id' | 'namespace'>, ...more: readonly string[]): string {
  return [...[id, ...more].map(shellWord), ...(namespace === 'default' ? [] : ['-n', shellWord(namespace)])].join(' ');
}
