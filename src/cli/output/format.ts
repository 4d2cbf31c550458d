import { Bytes } from '../../resource/index.ts';
import { stringifyYaml } from '../../wire/index.ts';
import { UsageError } from '../exit-codes.ts';
import type { JoinedResource } from '../joined.ts';
import { compileJsonPath } from './jsonpath.ts';

export type OutputFormat = 'table' | 'wide' | 'yaml' | 'json' | 'name' | { readonly jsonPath: (value: unknown) => string };

/** Reads `-o`. */
export function parseOutput(text: string | undefined): OutputFormat {
  if (text === undefined) return 'table';
  if (text.startsWith('jsonpath=')) return { jsonPath: compileJsonPath(text.slice('jsonpath='.length)) };
  if (text === 'table' || text === 'wide' || text === 'yaml' || text === 'json' || text === 'name') return text;
  throw new UsageError(`unknown output ${text}; expected table, wide, yaml, json, name or jsonpath=TEMPLATE`);
}

/** JSON text of plain data: integers beyond 2^53 as they are, bytes as base64. `indent` 0 keeps it on one line. */
export function jsonText(value: unknown, indent = 2): string {
  const integers: string[] = [];
  // A placeholder that no text can hold stands for an integer that JSON.stringify refuses.
  const mark = '\u0000integer:';
  const text = JSON.stringify(
    value,
    (_key, item: unknown) => {
      if (typeof item === 'bigint') return `${mark}${integers.push(String(item)) - 1}`;
      return Bytes.is(item) ? item.toBase64() : item;
    },
    indent,
  );
  return integers.length === 0
    ? text
    : text.replace(/"\\u0000integer:([0-9]+)"/g, (_match, place: string) => integers[Number(place)] as string);
}

/** What a resource file holds: metadata without what is empty, and the spec. */
export function fileForm({ metadata, spec }: JoinedResource): Record<string, unknown> {
  const { namespace, type, id, version, uid, phase, owner, finalizers, labels, annotations, created, updated } = metadata;
  return {
    metadata: {
      namespace,
      type,
      id,
      version,
      ...(uid !== '' && { uid }),
      phase,
      ...(owner !== '' && { owner }),
      ...(finalizers.length > 0 && { finalizers }),
      ...(Object.keys(labels).length > 0 && { labels }),
      ...(Object.keys(annotations).length > 0 && { annotations }),
      created,
      updated,
    },
    spec,
  };
}

/** Resources as YAML or JSON: one when an id was given, else `{ items: [] }`. */
export function structured(format: 'yaml' | 'json', resources: readonly JoinedResource[], single: boolean): string {
  const forms = resources.map(fileForm);
  const value = single && forms.length === 1 ? forms[0] : { items: forms };
  return format === 'json' ? `${jsonText(value)}\n` : stringifyYaml(value);
}
