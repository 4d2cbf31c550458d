import type { LabelTerm, ResourceQuery } from '../resource/index.ts';
import { invalid } from '../resource/index.ts';
import type { QueryOptions, WireLabelTerm } from './messages.ts';

const operations: readonly (LabelTerm['op'] | 'notExists')[] = [
  'exists',
  'equal',
  'notExists',
  'in',
  'lessThan',
  'lessOrEqual',
  'lessThanNumeric',
  'lessOrEqualNumeric',
];

export function queryFromWire({ labelQuery, idQuery }: QueryOptions): ResourceQuery {
  return {
    ...(labelQuery.length > 0 && { labelQueries: labelQuery.map(({ terms }) => ({ terms: terms.map(termFromWire) })) }),
    ...(idQuery !== undefined && idQuery.regexp !== '' && { idQuery: idQuery.regexp }),
  };
}

function termFromWire({ key, op, value, invert }: WireLabelTerm): LabelTerm {
  const operation = operations[op];
  if (operation === undefined) throw invalid([{ path: 'label query', message: `unknown operation ${op} on ${key}` }]);
  // The deprecated operation is an inverted exists.
  if (operation === 'notExists') return { key, op: 'exists', invert: !invert };
  return { key, op: operation, values: value, invert };
}

export function queryToWire(query: ResourceQuery): QueryOptions {
  return {
    labelQuery: (query.labelQueries ?? []).map(({ terms }) => ({
      terms: terms.map(({ key, op, values = [], invert = false }) => ({ key, op: operations.indexOf(op), value: values, invert })),
    })),
    ...(query.idQuery !== undefined && { idQuery: { regexp: query.idQuery } }),
  };
}
