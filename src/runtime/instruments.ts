import type { Counter, Environment, Gauge, Histogram, MetricLabels } from '../environment/index.ts';

/** The metrics of one controller. */
export class Instruments {
  readonly labels: MetricLabels;
  readonly wakeUps: Counter;
  readonly reads: Counter;
  readonly writes: Counter;
  readonly failures: Counter;
  readonly requeues: Counter;
  readonly skips: Counter;
  readonly hotLoops: Counter;
  readonly queueLength: Gauge;
  readonly queueSeconds: Histogram;
  readonly reconcileSeconds: Histogram;

  constructor({ metrics }: Environment, controller: string) {
    this.labels = { controller };
    const names = ['controller'];
    const counter = (name: string, help: string): Counter => metrics.counter(`steadystate_controller_${name}_total`, help, names);
    this.wakeUps = counter('wakeups', 'Changes of inputs that woke a controller');
    this.reads = counter('reads', 'Reads of controllers');
    this.writes = counter('writes', 'Writes of controllers');
    this.failures = counter('failures', 'Runs of controllers that failed');
    this.requeues = counter('requeues', 'Runs that asked for another one after a while');
    this.skips = counter('skips', 'Runs that gave up until the next change');
    this.hotLoops = counter('hot_loops', 'Keys that were slowed down because they write again and again');
    this.queueLength = metrics.gauge(
      'steadystate_controller_queue_length',
      'Keys that are ready to be reconciled and wait for a worker',
      names,
    );
    this.queueSeconds = metrics.histogram('steadystate_controller_queue_seconds', 'From ready to run of a key', names);
    this.reconcileSeconds = metrics.histogram('steadystate_controller_reconcile_seconds', 'Duration of reconciles', names);
  }
}
