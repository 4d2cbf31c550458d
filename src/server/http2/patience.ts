import { Allowance } from './allowance.ts';
import { errorCodes, fault } from './frames.ts';

/** Frames that are of no use, though allowed: so many at once, and so many a second. */
const oddities = [1_000, 100] as const;
/** Streams that a client resets, a second; at once, as many as it may have open. */
const resetsPerSecond = 200;

/** What one client may do that costs work and brings it nothing. Throws ConnectionFault when it was too much. */
export class Patience {
  readonly #mostStreams: number;
  readonly #elapsed: () => number;
  readonly #resets: Allowance;
  readonly #odd: Allowance;
  /** Streams that ended here before the client had said all: the rest may be on its way, which is no fault of it. */
  readonly #late = new Set<number>();

  constructor(mostStreams: number, elapsed: () => number) {
    this.#mostStreams = mostStreams;
    this.#elapsed = elapsed;
    this.#resets = new Allowance(mostStreams, resetsPerSecond, elapsed());
    this.#odd = new Allowance(...oddities, elapsed());
  }

  /** A stream was reset by the client, or because of it: it is the same work. */
  reset(): void {
    if (!this.#resets.use(this.#elapsed())) fault(errorCodes.enhanceYourCalm, 'too many streams are reset');
  }

  oddity(): void {
    if (!this.#odd.use(this.#elapsed())) fault(errorCodes.enhanceYourCalm, 'too many frames are of no use');
  }

  /** Something came behind the end of a stream. */
  afterEnd(stream: number, isLast: boolean, isEmpty: boolean): void {
    if (!this.#late.has(stream) || isEmpty) this.oddity();
    if (isLast) this.#late.delete(stream);
  }

  /** The stream has ended here; the client may not know yet. */
  expect(stream: number): void {
    this.#late.add(stream);
    if (this.#late.size <= this.#mostStreams) return;
    for (const oldest of this.#late) {
      this.#late.delete(oldest);
      return;
    }
  }

  /** Nothing more can come of it. */
  expectNothing(stream: number): void {
    this.#late.delete(stream);
  }
}
