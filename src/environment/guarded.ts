import type { Environment } from './environment.ts';
import type { Logger } from './logger.ts';
import { noMetrics } from './memory-metrics.ts';
import type { Metrics } from './metrics.ts';
import type { Span, Tracer } from './tracing.ts';
import { noSpan, noTracer } from './tracing.ts';

/** The environment, with a logger, metrics and a tracer that never throw: what they do must not end a worker, nor fail a call. */
export function guarded(environment: Environment, log: Logger = environment.log): Environment {
  return {
    ...environment,
    log: guardedLogger(log),
    metrics: guardedMetrics(environment.metrics),
    tracer: guardedTracer(environment.tracer),
  };
}

function guardedLogger(log: Logger): Logger {
  return {
    log: (level, message, fields) => quietly(() => log.log(level, message, fields)),
    with: (fields) => guardedLogger(quietly(() => log.with(fields)) ?? log),
  };
}

/** Metrics that never throw; those that drop everything are given as they are. */
export function guardedMetrics(metrics: Metrics): Metrics {
  if (metrics === noMetrics) return metrics;
  const none = { add: () => {}, set: () => {}, observe: () => {} };
  return {
    counter(name, help, labels) {
      const counter = quietly(() => metrics.counter(name, help, labels)) ?? none;
      return { add: (amount, labels) => quietly(() => counter.add(amount, labels)) };
    },
    gauge(name, help, labels) {
      const gauge = quietly(() => metrics.gauge(name, help, labels)) ?? none;
      return { set: (value, labels) => quietly(() => gauge.set(value, labels)) };
    },
    histogram(name, help, labels) {
      const histogram = quietly(() => metrics.histogram(name, help, labels)) ?? none;
      return { observe: (value, labels) => quietly(() => histogram.observe(value, labels)) };
    },
  };
}

/** A tracer that never throws; the one that records nothing is given as it is. */
export function guardedTracer(tracer: Tracer): Tracer {
  if (tracer === noTracer) return tracer;
  return { start: (name, options) => guardedSpan(quietly(() => tracer.start(name, options)) ?? noSpan) };
}

function guardedSpan(span: Span): Span {
  if (span === noSpan) return span;
  return {
    context: quietly(() => span.context),
    setAttributes: (attributes) => quietly(() => span.setAttributes(attributes)),
    addEvent: (name, attributes) => quietly(() => span.addEvent(name, attributes)),
    fail: (error) => quietly(() => span.fail(error)),
    end: () => quietly(() => span.end()),
    run(body) {
      let begun = false;
      try {
        return span.run(() => {
          begun = true;
          return body();
        });
      } catch (error) {
        // Failures of the body are the caller's; those of the tracer must not keep it from running.
        if (begun) throw error;
        return body();
      }
    },
  };
}

function quietly<Result>(body: () => Result): Result | undefined {
  try {
    return body();
  } catch {
    return undefined;
  }
}
