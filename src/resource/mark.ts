/**
 * Marks objects that were checked and frozen here, so that they are not checked again. The mark is a private
 * field put on the plain object itself: invisible, unforgeable, and several times cheaper than a WeakSet, which costs memory and
 * collector time for each of a million resources.
 */
class Given {
  constructor(object: object) {
    // biome-ignore lint/correctness/noConstructorReturn: returning another object is how the field lands on it.
    return object;
  }
}

class ValueMark extends Given {
  readonly #checked = true;
  static on(object: object): boolean {
    return #checked in object;
  }
}

class MetadataMark extends Given {
  readonly #checked = true;
  static on(object: object): boolean {
    return #checked in object;
  }
}

class ResourceMark extends Given {
  readonly #checked = true;
  static on(object: object): boolean {
    return #checked in object;
  }
}

export interface Mark {
  /** Marks and freezes. */
  seal<Value extends object>(value: Value): Value;
  /** Whether an object was sealed by this mark. */
  on(value: object): boolean;
}

function makeMark(mark: { new (object: object): object; on(object: object): boolean }): Mark {
  return {
    seal(value) {
      new mark(value);
      return Object.freeze(value);
    },
    on: (value) => mark.on(value),
  };
}

/** A plain value: everything at or below it is frozen plain data. */
export const valueMark: Mark = makeMark(ValueMark);
export const metadataMark: Mark = makeMark(MetadataMark);
export const resourceMark: Mark = makeMark(ResourceMark);
