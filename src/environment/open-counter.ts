/** Counts things that must be closed again. */
export interface OpenCounter {
  /** Marks one thing of `kind` (`timer`, `watch`, `socket`, `child`, `worker`, …) open until it is disposed. Disposing twice counts once. */
  track(kind: string): Disposable;
  /** What is open now, by kind; kinds at zero are left out. */
  counts(): Readonly<Record<string, number>>;
}
