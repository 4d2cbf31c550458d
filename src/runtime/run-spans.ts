import type { Span, SpanAttributes, Tracer } from '../environment/index.ts';
import { noSpan, noTracer } from '../environment/index.ts';
import { failSpan } from '../state/index.ts';

/** How a run ended, as its span tells it. */
export type Outcome = 'done' | 'requeued' | 'skipped' | 'failed' | 'stopped';

/** The spans of one thread of runs: one after another, each from its wake-up to its end. */
export class RunSpans {
  readonly #tracer: Tracer;
  readonly #controller: string;
  #span: Span = noSpan;

  constructor(tracer: Tracer, controller: string) {
    this.#tracer = tracer;
    this.#controller = controller;
  }

  /** Nothing is recorded: whoever would ask for a span need not. */
  get off(): boolean {
    return this.#tracer === noTracer;
  }

  /** The run that goes on now. */
  get span(): Span {
    return this.#span;
  }

  begin(attributes: () => SpanAttributes): Span {
    if (!this.off)
      this.#span = this.#tracer.start('reconcile', { attributes: { 'steadystate.controller': this.#controller, ...attributes() } });
    return this.#span;
  }

  end(outcome: Outcome, error?: unknown): void {
    const span = this.#span;
    if (span === noSpan) return;
    this.#span = noSpan;
    span.setAttributes({ 'steadystate.outcome': outcome });
    if (outcome === 'failed') failSpan(span, error);
    span.end();
  }
}
