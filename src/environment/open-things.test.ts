import { expect, test } from 'vitest';
import { MemoryMetrics } from './memory-metrics.ts';
import { nodeEnvironment } from './node-environment.ts';
import { OpenThings } from './open-things.ts';

test('open things are counted by kind, each closed once', () => {
  const open = new OpenThings();
  const first = open.track('watch');
  const second = open.track('watch');
  open.track('worker')[Symbol.dispose]();
  expect(open.counts()).toEqual({ watch: 2 });
  first[Symbol.dispose]();
  first[Symbol.dispose]();
  expect(open.counts()).toEqual({ watch: 1 });
  second[Symbol.dispose]();
  expect(open.counts()).toEqual({});
});

test('an environment gives ids and numbers that differ', () => {
  const environment = nodeEnvironment();
  const ids = new Set(Array.from({ length: 1000 }, () => environment.id()));
  expect(ids.size).toBe(1000);
  for (const id of ids) expect(id).toMatch(/^[0-9a-f]{32}$/);
  expect(environment.random()).not.toBe(environment.random());
  expect(environment.open.counts()).toEqual({});
});

test('metrics in memory are kept by name and labels', () => {
  const metrics = new MemoryMetrics();
  metrics.counter('writes').add();
  metrics.counter('writes').add(2);
  metrics.counter('writes').add(1, { kind: 'b', by: 'a' });
  metrics.gauge('depth').set(5);
  metrics.gauge('depth').set(3);
  metrics.histogram('seconds').observe(0.5);
  metrics.histogram('seconds').observe(1);
  expect(metrics.value('writes')).toBe(3);
  expect(metrics.value('writes', { by: 'a', kind: 'b' })).toBe(1);
  expect(metrics.value('depth')).toBe(3);
  expect([metrics.value('seconds_sum'), metrics.value('seconds_count')]).toEqual([1.5, 2]);
  expect(metrics.value('nothing')).toBe(0);
});
