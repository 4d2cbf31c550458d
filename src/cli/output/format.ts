import { stringifyYaml } from '../../wire/index.ts';
import { UsageError } from '../exit-codes.ts';
import type { JoinedResource } from '../joined.ts';
import { jsonText } from './json-text.ts';
import { compileJsonPath } from './jsonpath.ts';

export { jsonText };

export type OutputFormat = 'table' | 'wide' | 'yaml' | 'json' | 'name' | { readonly jsonPath: (value: unknown) => string };

/** Reads `-o`. */
export function parseOutput(text: string | undefined): OutputFormat {
  if (text === undefined) return 'table';
  if (text.startsWith('jsonpath=')) return { jsonPath: compileJsonPath(text.slice('jsonpath='.length)) };
  if (text === 'table' || text === 'wide' || text === 'yaml' || text === 'json' || text === 'name') return text;
  throw new UsageError(`unknown output ${text}; expected table, wide, yaml, json, name or jsonpath=TEMPLATE`);
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

/** What JSONPaths of `-o` and `--for` look at. */
export function pathForm(resource: JoinedResource): unknown {
  return { ...fileForm(resource), ...(resource.status !== undefined && { status: resource.status }) };
}

/** Resources as YAML or JSON: one when an id was given, else `{ items: [] }`. */
export function structured(format: 'yaml' | 'json', resources: readonly JoinedResource[], single: boolean): string {
  const forms = resources.map(fileForm);
  const value = single && forms.length === 1 ? forms[0] : { items: forms };
  return format === 'json' ? `${jsonText(value)}\n` : stringifyYaml(value);
}
