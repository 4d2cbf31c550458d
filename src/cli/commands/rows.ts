import type { ResourceDefinitionSpec } from '../../resource/index.ts';
import { UsageError } from '../exit-codes.ts';
import type { JoinedResource } from '../joined.ts';
import { ageText } from '../output/age.ts';
import { pathForm } from '../output/format.ts';
import { compilePath, valueText } from '../output/jsonpath.ts';

const none = '<none>';
const gone = '<gone>';

/** Headings and cells of one type. */
export interface RowShape {
  readonly headings: readonly string[];
  cells(resource: JoinedResource): readonly string[];
  /** Of one that is no more. */
  goneCells(metadata: Pick<JoinedResource['metadata'], 'namespace' | 'id'>): readonly string[];
}

/** Of a type that says nothing of its columns. */
const ofAll = [{ name: 'PHASE', read: (resource: unknown): readonly unknown[] => [(resource as JoinedResource).metadata.phase] }];
/** The same, where a companion may tell how it is. */
const ofStatus = [
  ...ofAll,
  { name: 'READY', read: compilePath('{.status.conditions[?(@.type=="Ready")].status}') },
  { name: 'REASON', read: compilePath('{.status.conditions[?(@.type=="Ready")].reason}') },
];

/** The columns of a type: its own, between the id and the age. */
export function rowShape(
  definition: ResourceDefinitionSpec | undefined,
  options: { readonly wide: boolean; readonly labels: boolean; readonly namespaces: boolean; readonly nowMs: () => number },
): RowShape {
  const own = (definition?.printColumns ?? []).map(({ name, jsonPath }) => {
    try {
      return { name: name.toUpperCase(), read: compilePath(jsonPath) };
    } catch {
      // Another program described it in a dialect that we do not read: an empty column tells more than a failed look.
      return { name: name.toUpperCase(), read: () => [] };
    }
  });
  const columns = own.length > 0 ? own : definition !== undefined && definition.statusType !== '' ? ofStatus : ofAll;
  const hasAge = columns.some(({ name }) => name === 'AGE');
  return {
    headings: [
      ...(options.namespaces ? ['NAMESPACE'] : []),
      'ID',
      ...columns.map(({ name }) => name),
      ...(hasAge ? [] : ['AGE']),
      ...(options.wide ? ['VERSION', 'OWNER'] : []),
      ...(options.wide || options.labels ? ['LABELS'] : []),
    ],
    goneCells: ({ namespace, id }) => [...(options.namespaces ? [namespace] : []), id, gone],
    cells: (resource) => {
      const { metadata } = resource;
      const age = (): string => ageText(metadata.created, options.nowMs());
      return [
        ...(options.namespaces ? [metadata.namespace] : []),
        metadata.id,
        ...columns.map(({ name, read }) => {
          if (name === 'AGE') return age();
          const text = read(resource).map(valueText).join(',');
          // A moment in the past reads as an age too.
          return name === 'LAST SEEN' ? ageText(text, options.nowMs()) : text;
        }),
        ...(hasAge ? [] : [age()]),
        ...(options.wide ? [metadata.version, metadata.owner === '' ? none : metadata.owner] : []),
        ...(options.wide || options.labels ? [labelsText(metadata.labels)] : []),
      ];
    },
  };
}

function labelsText(labels: Readonly<Record<string, string>>): string {
  const pairs = Object.entries(labels).map(([key, value]) => `${key}=${value}`);
  return pairs.length === 0 ? none : pairs.join(',');
}

/** The columns of `custom-columns=HEADING:.path,…`; `undefined` for another output. */
export function parseCustomColumns(output: string | undefined): RowShape | undefined {
  const text = /^custom-columns=(.*)$/s.exec(output ?? '')?.[1];
  if (text === undefined) return undefined;
  // A comma inside brackets or braces belongs to its path.
  const columns = (text.match(/(?:\{[^}]*\}|\[[^\]]*\]|[^,])+/g) ?? []).map((column) => {
    const [, name = '', path = ''] = /^([^:]*):(.+)$/s.exec(column) ?? [];
    if (name === '' || path === '')
      throw new UsageError(`-o custom-columns: expected HEADING:.path, such as ID:.metadata.id, found ${column}`);
    return { name, read: compilePath(path) };
  });
  if (columns.length === 0) throw new UsageError('-o custom-columns=HEADING:.path,… needs a column, such as ID:.metadata.id');
  return {
    headings: columns.map(({ name }) => name),
    goneCells: ({ id }) => [id, gone],
    cells: (resource) => columns.map(({ read }) => read(pathForm(resource)).map(valueText).join(',') || none),
  };
}
