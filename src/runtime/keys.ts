import type { Kind, Pointer } from '../resource/index.ts';

/** Names a resource within the runtime. Names hold no control characters, so this is unambiguous. */
export function keyOf({ namespace, type, id }: Pointer): string {
  return `${namespace}\u0000${type}\u0000${id}`;
}

export function pointerOfKey(key: string): Pointer {
  const [namespace = '', type = '', id = ''] = key.split('\u0000');
  return { namespace, type, id };
}

/** The same for a kind. */
export function kindKeyOf({ namespace, type }: Kind): string {
  return `${namespace}\u0000${type}`;
}
