import type { Pointer, Resource } from '../../resource/index.ts';
import { orAborted } from './or-aborted.ts';

/** Finds a resource that was not put in yet; `undefined`: there may be none, which only the whole can tell. */
export type EarlyFind = (pointer: Pointer) => Promise<Resource | undefined>;

/** The time in which a broker has not got all of its resources yet. */
export class Loading {
  readonly find: EarlyFind;
  /** Settles once it is over, well or not. */
  readonly over: Promise<void>;
  readonly end: () => void;

  constructor(find: EarlyFind) {
    this.find = find;
    let end = (): void => {};
    this.over = new Promise((resolve) => {
      end = resolve;
    });
    this.end = end;
  }

  /** Waits until it is over, or gives up with the signal's reason. */
  wait(signal: AbortSignal | undefined): Promise<void> {
    return orAborted(this.over, signal);
  }
}
