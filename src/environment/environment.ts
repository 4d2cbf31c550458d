import type { FilePort } from './files.ts';
import type { Logger } from './logger.ts';
import type { Metrics } from './metrics.ts';
import type { NetworkPort } from './network.ts';
import type { OpenCounter } from './open-counter.ts';
import type { ProcessPort } from './processes.ts';
import type { Tracer } from './tracing.ts';

/**
 * Everything that time, chance and the outside world can do to a program comes in through this one object, so
 * that tests and simulations own it. It is a constructor argument everywhere, never a module's default.
 */
export interface Environment {
  /** Wall clock, milliseconds since the epoch. It may jump; never measure with it. */
  now(): number;
  /** The wall clock as RFC 3339 text in UTC, as fine as the clock is (`2026-01-02T03:04:05.678Z`). */
  timestamp(): string;
  /** Monotonic clock, milliseconds. Leases, back-off and deadlines use this one. */
  elapsed(): number;
  /** Runs `callback` once after `delayMs` (any finite size; more than 2³¹−1 ms is re-armed). Dispose to cancel. */
  after(delayMs: number, callback: () => void): Disposable;
  /** Resolves after `delayMs`; rejects with the signal's reason when it aborts first. Nothing stays armed. */
  sleep(delayMs: number, signal?: AbortSignal): Promise<void>;
  /** Yields one macrotask, so that timers and input get their turn. */
  breathe(): Promise<void>;
  /** A number in [0, 1). */
  random(): number;
  /** A fresh identifier: 128 random bits as 32 lower-case hexadecimal digits. */
  id(): string;
  readonly processes: ProcessPort;
  readonly files: FilePort;
  readonly network: NetworkPort;
  readonly log: Logger;
  readonly metrics: Metrics;
  readonly tracer: Tracer;
  /** Counts what is open (timers, watches, sockets, children, workers): a test asserts that it ends at zero. */
  readonly open: OpenCounter;
}
