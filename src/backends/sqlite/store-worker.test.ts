import { expect, test } from 'vitest';
import { nodeEnvironment } from '../../environment/index.ts';
import { StoreWorker } from './store-worker.ts';

test('a thread that is asked something counts as busy until it has answered', async () => {
  const environment = nodeEnvironment();
  const worker = new StoreWorker(environment);
  expect(environment.open.counts().storeCall).toBeUndefined();
  const calls = [worker.call({ call: 'close' }), worker.call({ call: 'close' })];
  expect(environment.open.counts().storeCall).toBe(1);
  await Promise.allSettled(calls);
  expect(environment.open.counts().storeCall).toBeUndefined();
  await worker.stop();
  expect(environment.open.counts()).toEqual({});
});
