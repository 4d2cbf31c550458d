import type { Resource } from '../../resource/index.ts';
import { visibleText } from '../../resource/index.ts';
import type { TypesLookup } from '../types-lookup.ts';

/** A resource in short, as people read it; of two types of one name it does not tell which. */
export function shortName({ type, id }: Pick<Resource['metadata'], 'type' | 'id'>): string {
  return `${shortType(type)}/${id}`;
}

/**
 * What `-o name` prints of a resource, with its newline: as it is, for programs. What stands before the slash is a TYPE that
 * commands take: the whole one where the short one is not known to the store, or is that of another.
 */
export function nameLine({ type, id }: Pick<Resource['metadata'], 'type' | 'id'>, types: TypesLookup): string {
  const short = shortType(type);
  const [meant, ...others] = types.named(short);
  return `${meant?.resourceType === type && others.length === 0 ? short : type}/${id}\n`;
}

function shortType(type: string): string {
  return (type.split('.')[0] as string).toLowerCase();
}

/** The name of a resource in a sentence. */
export function shownName(metadata: Pick<Resource['metadata'], 'type' | 'id'>): string {
  return visibleText(shortName(metadata));
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
