import type { InvalidIssue } from './errors.ts';
import type { IdRange } from './id-query.ts';
import { compileIdQuery, idRange } from './id-query.ts';
import type { LabelQuery, LabelTerm, ResourceQuery } from './queries.ts';
import type { Metadata } from './resource.ts';
import { compareIds } from './text.ts';
import { invalid } from './values.ts';

/** Tells whether metadata matches a query. */
export type CompiledQuery = (metadata: Metadata) => boolean;

type CompiledTerm = (labels: Readonly<Record<string, string>>) => boolean;

/** A compiled query, and where a store with an order or an index may look instead of everywhere. */
export interface QueryPlan {
  readonly matches: CompiledQuery;
  /** Every id that matches begins so, or is just that. */
  readonly ids: IdRange | undefined;
  /** Whatever matches has one of these labels with one of their values. */
  readonly labels: readonly { readonly key: string; readonly values: readonly string[] }[] | undefined;
}

/** `undefined` when the query matches everything. Throws Invalid for a bad term or expression. */
export function compileQuery(query: ResourceQuery): CompiledQuery | undefined {
  return planQuery(query)?.matches;
}

/** The same, with what an index can use. */
export function planQuery(query: ResourceQuery): QueryPlan | undefined {
  if (query.labelQueries === undefined && query.idQuery === undefined) return undefined;
  const given = query.labelQueries ?? [];
  const labelQueries = given.map((labelQuery, index) => compileLabelQuery(labelQuery, `labelQueries[${index}]`));
  // A query without terms matches everything, and so then do all of them together.
  const anyLabels = labelQueries.length === 0 || labelQueries.some((terms) => terms.length === 0);
  const expression = query.idQuery === '' ? undefined : query.idQuery;
  const id = expression === undefined ? undefined : compileIdQuery(expression);
  const ids = expression === undefined ? undefined : idRange(expression);
  if (anyLabels) return id && { matches: (metadata) => id(metadata.id), ids, labels: undefined };
  return {
    matches: (metadata) =>
      (id === undefined || id(metadata.id)) && labelQueries.some((terms) => terms.every((term) => term(metadata.labels))),
    ids,
    labels: labelsOf(given),
  };
}

/** One term of each query that names values, if every query has one. */
function labelsOf(queries: readonly LabelQuery[]): QueryPlan['labels'] {
  const labels: { readonly key: string; readonly values: readonly string[] }[] = [];
  for (const { terms } of queries) {
    const term = terms.find(({ op, invert }) => (op === 'equal' || op === 'in') && !invert);
    if (term === undefined) return undefined;
    labels.push({ key: term.key, values: term.values ?? [] });
  }
  return labels;
}

export function matchesQuery(resource: { readonly metadata: Metadata }, query: ResourceQuery): boolean {
  return compileQuery(query)?.(resource.metadata) ?? true;
}

function compileLabelQuery(query: LabelQuery, path: string): readonly CompiledTerm[] {
  if (!Array.isArray(query?.terms)) throw invalid([{ path: `${path}.terms`, message: 'expected a list of terms' }]);
  const issues: InvalidIssue[] = [];
  const terms = query.terms.map((term, index) => compileTerm(term, `${path}.terms[${index}]`, issues));
  if (issues.length > 0) throw invalid(issues);
  return terms;
}

function compileTerm(term: LabelTerm, path: string, issues: InvalidIssue[]): CompiledTerm {
  const { key, op } = term;
  const invert = term.invert ?? false;
  const values = term.values ?? [];
  if (typeof key !== 'string' || key === '') issues.push({ path: `${path}.key`, message: 'expected a label key' });
  if (op !== 'exists' && op !== 'in' && values.length !== 1) {
    issues.push({ path: `${path}.values`, message: `${op} needs exactly one value, found ${values.length}` });
  }
  const value = values[0] ?? '';
  const present =
    (test: (label: string) => boolean): CompiledTerm =>
    (labels) =>
      Object.hasOwn(labels, key) && test(labels[key] as string);
  const inverted = (test: CompiledTerm): CompiledTerm => (invert ? (labels) => !test(labels) : test);
  switch (op) {
    case 'exists':
      return inverted((labels) => Object.hasOwn(labels, key));
    case 'equal':
      return inverted(present((label) => label === value));
    case 'in': {
      const set = new Set(values);
      return inverted(present((label) => set.has(label)));
    }
    // A comparison never matches a missing label, inverted or not. Text is ordered by its UTF-8 bytes, as everywhere.
    case 'lessThan':
      return present((label) => compareIds(label, value) < 0 !== invert);
    case 'lessOrEqual':
      return present((label) => compareIds(label, value) <= 0 !== invert);
    case 'lessThanNumeric':
    case 'lessOrEqualNumeric': {
      const bound = parseLabelNumber(value);
      if (bound === undefined)
        issues.push({ path: `${path}.values[0]`, message: `expected a number such as 10, 4Gi or 5k, found ${JSON.stringify(value)}` });
      return present((label) => {
        const number = parseLabelNumber(label);
        if (number === undefined || bound === undefined) return false;
        return (op === 'lessThanNumeric' ? number < bound : number <= bound) !== invert;
      });
    }
    default:
      issues.push({ path: `${path}.op`, message: `unknown operation ${JSON.stringify(op)}` });
      return () => false;
  }
}

const binaryUnits: Readonly<Record<string, bigint>> = { pi: 2n ** 50n, ti: 2n ** 40n, gi: 2n ** 30n, mi: 2n ** 20n, ki: 2n ** 10n };
const decimalUnits: Readonly<Record<string, bigint>> = { p: 10n ** 15n, t: 10n ** 12n, g: 10n ** 9n, m: 10n ** 6n, k: 10n ** 3n };

/**
 * A label as a number: digits and `-`, then a unit: pi ti gi mi ki (binary) or, by its first letter, p t g m k.
 * `undefined`: not a number. Never wraps.
 */
export function parseLabelNumber(text: string): bigint | undefined {
  const parts = /^(-?[0-9]+)(?:\s*([A-Za-z].*))?$/s.exec(text.trim());
  if (parts === null) return undefined;
  const digits = BigInt(parts[1] as string);
  const unit = parts[2]?.toLowerCase();
  if (unit === undefined) return digits;
  const factor = binaryUnits[unit.slice(0, 2)] ?? decimalUnits[unit.slice(0, 1)];
  return factor === undefined ? undefined : digits * factor;
}

/**
 * Reads kubectl's label syntax: `a=b,c!=d,e in (f,g),h notin (i),j,!k,l<5` – the terms of one query. Comparisons
 * (`<`, `<=`, `>`, `>=`) are numeric when their value is a number. Throws Invalid.
 */
export function parseLabelQuery(text: string): LabelQuery {
  const terms: LabelTerm[] = [];
  for (const part of splitTerms(text)) {
    const term = parseTerm(part.trim());
    if (term === undefined) {
      throw invalid([
        {
          path: 'label query',
          message: `cannot read ${JSON.stringify(part)} in ${JSON.stringify(text)}; expected for example app=web, tier!=db, env in (a,b), !legacy`,
        },
      ]);
    }
    terms.push(term);
  }
  return { terms };
}

function splitTerms(text: string): string[] {
  const parts: string[] = [];
  let depth = 0;
  let start = 0;
  for (let index = 0; index < text.length; index++) {
    const character = text[index];
    if (character === '(') depth++;
    else if (character === ')') depth--;
    else if (character === ',' && depth === 0) {
      parts.push(text.slice(start, index));
      start = index + 1;
    }
  }
  parts.push(text.slice(start));
  return parts;
}

function parseTerm(text: string): LabelTerm | undefined {
  const key = '([^\\s=!<>(),]+)';
  const set = new RegExp(`^${key}\\s+(in|notin)\\s*\\(([^()]*)\\)$`).exec(text);
  if (set) {
    return {
      key: set[1] as string,
      op: 'in',
      values: (set[3] as string).split(',').map((value) => value.trim()),
      invert: set[2] === 'notin',
    };
  }
  const comparison = new RegExp(`^${key}\\s*(==|=|!=|<=|<|>=|>)\\s*([^\\s=!<>(),]*)$`).exec(text);
  if (comparison) {
    const [, name = '', sign, value = ''] = comparison;
    if (sign === '=' || sign === '==') return { key: name, op: 'equal', values: [value] };
    if (sign === '!=') return { key: name, op: 'equal', values: [value], invert: true };
    const numeric = parseLabelNumber(value) !== undefined;
    // a > b is not (a <= b); comparisons do not match a missing label either way.
    if (sign === '<') return { key: name, op: numeric ? 'lessThanNumeric' : 'lessThan', values: [value] };
    if (sign === '<=') return { key: name, op: numeric ? 'lessOrEqualNumeric' : 'lessOrEqual', values: [value] };
    if (sign === '>') return { key: name, op: numeric ? 'lessOrEqualNumeric' : 'lessOrEqual', values: [value], invert: true };
    return { key: name, op: numeric ? 'lessThanNumeric' : 'lessThan', values: [value], invert: true };
  }
  const exists = new RegExp(`^(!?)\\s*${key}$`).exec(text);
  if (exists) return { key: exists[2] as string, op: 'exists', invert: exists[1] === '!' };
  return undefined;
}
