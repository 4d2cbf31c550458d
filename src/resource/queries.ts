/** One condition on one label. */
export interface LabelTerm {
  readonly key: string;
  readonly op: 'exists' | 'equal' | 'in' | 'lessThan' | 'lessOrEqual' | 'lessThanNumeric' | 'lessOrEqualNumeric';
  /** One value for `equal` and the comparisons, any number for `in`, none for `exists`. */
  readonly values?: readonly string[];
  /** Turns the term round; then it also matches resources that lack the label (never so for comparisons). */
  readonly invert?: boolean;
}

/** All terms must hold. */
export interface LabelQuery {
  readonly terms: readonly LabelTerm[];
}

/** The same names for list and watch. */
export interface ResourceQuery {
  /** At least one query must hold; none given: all resources match. */
  readonly labelQueries?: readonly LabelQuery[];
  /** An RE2 expression that must match somewhere in the id. */
  readonly idQuery?: string;
}
