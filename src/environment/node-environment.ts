import { randomBytes } from 'node:crypto';
import type { Environment } from './environment.ts';
import type { Logger } from './logger.ts';
import { silentLogger } from './loggers.ts';
import { noMetrics } from './memory-metrics.ts';
import type { Metrics } from './metrics.ts';
import { nodeClock } from './node-clock.ts';
import { nodeFiles } from './node-files.ts';
import { nodeNetwork } from './node-network.ts';
import { nodeProcesses } from './node-processes.ts';
import { OpenThings } from './open-things.ts';
import type { Tracer } from './tracing.ts';
import { noTracer } from './tracing.ts';

export interface NodeEnvironmentOptions {
  /** @default a logger that drops everything */
  readonly log?: Logger;
  /** @default metrics that drop everything */
  readonly metrics?: Metrics;
  /** @default a tracer that records nothing */
  readonly tracer?: Tracer;
}

/** The real thing: this machine's clocks, chance, files, network and processes. */
export function nodeEnvironment(options: NodeEnvironmentOptions = {}): Environment {
  const open = new OpenThings();
  return {
    ...nodeClock(open),
    random: () => Math.random(),
    id: () => randomBytes(16).toString('hex'),
    processes: nodeProcesses(open),
    files: nodeFiles(open),
    network: nodeNetwork(open),
    log: options.log ?? silentLogger,
    metrics: options.metrics ?? noMetrics,
    tracer: options.tracer ?? noTracer,
    open,
  };
}
