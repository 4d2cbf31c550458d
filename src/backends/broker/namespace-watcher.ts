import type { SteadystateError } from '../../resource/index.ts';
import type { EventSource, StateEvent } from '../../state/index.ts';
import { namespaceEvent } from '../../state/index.ts';
import type { WatcherHost } from './kind-watcher.ts';

export interface NamespaceWatcherStart {
  /** Those that have resources of the type now, sorted. */
  readonly namespaces: readonly string[];
  /** Whether one has some. */
  readonly isPresent: (namespace: string) => boolean;
  readonly forget: () => void;
}

/** A watch of the namespaces in which a type has resources. It keeps names only, each at most once, whatever its reader does. */
export class NamespaceWatcher implements EventSource {
  readonly #host: Pick<WatcherHost, 'wake'>;
  readonly #isPresent: NamespaceWatcherStart['isPresent'];
  readonly #forget: () => void;
  /** Those that the reader knows of. */
  readonly #told = new Set<string>();
  /** Those to look at. */
  readonly #changed: Set<string>;
  #bootstrapped = false;
  #error: SteadystateError | undefined;
  #callbacks: (() => void)[] = [];
  ended = false;

  constructor(host: Pick<WatcherHost, 'wake'>, { namespaces, isPresent, forget }: NamespaceWatcherStart) {
    this.#host = host;
    this.#isPresent = isPresent;
    this.#forget = forget;
    this.#changed = new Set(namespaces);
  }

  /** The first resource of a namespace has come, or its last one gone. */
  note(namespace: string): void {
    this.#changed.add(namespace);
    for (const callback of this.#callbacks.splice(0)) this.#host.wake(callback);
  }

  take(max: number): readonly StateEvent[] {
    if (this.ended) return [];
    const events: StateEvent[] = [];
    for (const namespace of this.#changed) {
      if (events.length >= max) return events;
      this.#changed.delete(namespace);
      const present = this.#isPresent(namespace);
      if (present === this.#told.has(namespace)) continue;
      if (present) this.#told.add(namespace);
      else this.#told.delete(namespace);
      events.push(namespaceEvent(namespace, present));
    }
    if (!this.#bootstrapped && events.length < max) {
      this.#bootstrapped = true;
      events.push(bootstrapped);
    }
    if (this.#error !== undefined && events.length < max) {
      events.push({ type: 'errored', error: this.#error });
      this.close();
    }
    return events;
  }

  whenReady(callback: () => void): void {
    if (this.ended || !this.#bootstrapped || this.#changed.size > 0 || this.#error !== undefined) callback();
    else this.#callbacks.push(callback);
  }

  close(): void {
    if (this.ended) return;
    this.ended = true;
    this.#changed.clear();
    this.#told.clear();
    this.#forget();
    for (const callback of this.#callbacks.splice(0)) callback();
  }

  fail(error: SteadystateError): void {
    if (this.ended || this.#error !== undefined) return;
    this.#error = error;
    for (const callback of this.#callbacks.splice(0)) callback();
  }
}

const bootstrapped: StateEvent = Object.freeze({ type: 'bootstrapped' });
