/** What a store remembers of one finalizer, beside the resource and never in it. */
export interface FinalizerNote {
  readonly finalizer: string;
  /** RFC 3339: when it was put there; empty: before the store remembered such things. */
  readonly since: string;
  /** Who put it there, if the write said so (`actor`); empty: nobody did. */
  readonly actor: string;
}
