import type { Environment, Logger, Metrics } from '../environment/index.ts';

/** The environment, with a logger and metrics that never throw: what they do must not end a worker. */
export function guarded(environment: Environment, log: Logger): Environment {
  return { ...environment, log: guardedLogger(log), metrics: guardedMetrics(environment.metrics) };
}

function guardedLogger(log: Logger): Logger {
  return {
    log: (level, message, fields) => quietly(() => log.log(level, message, fields)),
    with: (fields) => guardedLogger(quietly(() => log.with(fields)) ?? log),
  };
}

function guardedMetrics(metrics: Metrics): Metrics {
  const none = { add: () => {}, set: () => {}, observe: () => {} };
  return {
    counter(name, help) {
      const counter = quietly(() => metrics.counter(name, help)) ?? none;
      return { add: (amount, labels) => quietly(() => counter.add(amount, labels)) };
    },
    gauge(name, help) {
      const gauge = quietly(() => metrics.gauge(name, help)) ?? none;
      return { set: (value, labels) => quietly(() => gauge.set(value, labels)) };
    },
    histogram(name, help) {
      const histogram = quietly(() => metrics.histogram(name, help)) ?? none;
      return { observe: (value, labels) => quietly(() => histogram.observe(value, labels)) };
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
