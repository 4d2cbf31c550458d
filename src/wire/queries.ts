import type { LabelTerm, ResourceQuery } from '../resource/index.ts';
import { SteadystateError } from '../resource/index.ts';
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
  // Of a newer client: it is not wrong, only not to be had here.
  if (operation === undefined)
    throw new SteadystateError(
      'Unsupported',
      `the label query asks for operation ${op} on ${JSON.stringify(key)}, which this server does not know`,
    );
  // The deprecated operation is an inverted exists, whatever else the term says.
  if (operation === 'notExists') return { key, op: 'exists', invert: true };
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
