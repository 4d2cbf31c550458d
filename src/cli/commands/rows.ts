import type { ResourceDefinitionSpec } from '../../resource/index.ts';
import type { JoinedResource } from '../joined.ts';
import { ageText } from '../output/age.ts';
import { compilePath, valueText } from '../output/jsonpath.ts';

/** Headings and cells of one type. */
export interface RowShape {
  readonly headings: readonly string[];
  cells(resource: JoinedResource): readonly string[];
  /** Of one that is no more. */
  goneCells(metadata: Pick<JoinedResource['metadata'], 'namespace' | 'id'>): readonly string[];
}

/** The columns of a type: its own, between the id and the age. */
export function rowShape(
  definition: ResourceDefinitionSpec | undefined,
  options: { readonly wide: boolean; readonly namespaces: boolean; readonly nowMs: () => number },
): RowShape {
  const own = (definition?.printColumns ?? []).map(({ name, jsonPath }) => {
    try {
      return { name: name.toUpperCase(), read: compilePath(jsonPath) };
    } catch {
      // Another program described it in a dialect that we do not read: an empty column tells more than a failed look.
      return { name: name.toUpperCase(), read: () => [] };
    }
  });
  const columns = own.length > 0 ? own : [{ name: 'PHASE', read: (resource: unknown) => [(resource as JoinedResource).metadata.phase] }];
  const hasAge = columns.some(({ name }) => name === 'AGE');
  return {
    headings: [
      ...(options.namespaces ? ['NAMESPACE'] : []),
      'ID',
      ...columns.map(({ name }) => name),
      ...(hasAge ? [] : ['AGE']),
      ...(options.wide ? ['VERSION', 'OWNER', 'LABELS'] : []),
    ],
    goneCells: ({ namespace, id }) => [...(options.namespaces ? [namespace] : []), id, '<gone>'],
    cells: (resource) => {
      const { metadata } = resource;
      const age = (): string => ageText(metadata.created, options.nowMs());
      return [
        ...(options.namespaces ? [metadata.namespace] : []),
        metadata.id,
        ...columns.map(({ name, read }) => (name === 'AGE' ? age() : read(resource).map(valueText).join(','))),
        ...(hasAge ? [] : [age()]),
        ...(options.wide
          ? [
              metadata.version,
              metadata.owner === '' ? '<none>' : metadata.owner,
              Object.entries(metadata.labels)
                .map(([key, value]) => `${key}=${value}`)
                .join(',') || '<none>',
            ]
          : []),
      ];
    },
  };
}
