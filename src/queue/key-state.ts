/** All that a queue knows of one key. */
export interface KeyState {
  readonly key: string;
  /** Of the pending run; a running key keeps its own in its item. */
  priority: number;
  /** Order of arrival among ready keys of one priority, or among equal due times. */
  order: number;
  /** Consecutive failures. */
  failures: number;
  /** Until when a failure keeps the deadline and the count, on elapsed time. */
  backOffUntil: number | undefined;
  /** When a delayed run is due, on elapsed time; `undefined`: none. */
  dueAt: number | undefined;
  ready: boolean;
  readySince: number;
  running: boolean;
  /** Added while running: it runs once more. */
  dirty: boolean;
  dirtyPriority: number;
  /** Its place in the one heap that it is in. */
  heapPlace: number;
}

export function newKeyState(key: string): KeyState {
  return {
    key,
    priority: 0,
    order: 0,
    failures: 0,
    backOffUntil: undefined,
    dueAt: undefined,
    ready: false,
    readySince: 0,
    running: false,
    dirty: false,
    dirtyPriority: 0,
    heapPlace: -1,
  };
}
