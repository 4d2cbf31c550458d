import { spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { expect, test } from 'vitest';
import { grpcCodes, stateService } from '../../src/wire/index.ts';
import { callBytes, ending, expectServed, kind, openCall, World, watchRequest } from '../server/world.ts';

const { watch } = stateService;

/** How long the slowest of most calls takes, milliseconds. */
async function p99(world: World, call: () => Promise<void>): Promise<number> {
  const took: number[] = [];
  for (let index = 0; index < 300; index++) {
    const start = world.environment.elapsed();
    await call();
    took.push(world.environment.elapsed() - start);
  }
  return took.sort((left, right) => left - right)[296] as number;
}

test('10,000 connections that do nothing are held to the limit, cost bounded memory, and others are served', async () => {
  const world = await World.serve('unix');
  await using _ = world;
  // Both ends are files of this process: half of what it may have open, if that is less.
  const files = Number(spawnSync('sh', ['-c', 'ulimit -n'], { encoding: 'utf8' }).stdout) || Number.POSITIVE_INFINITY;
  const count = Math.min(10_000, files - 5_000);
  expect(count, 'ulimit -n is too low for this test').toBeGreaterThan(4_500);
  const client = await world.client();
  const events = (await client.watchKind(kind))[Symbol.asyncIterator]();
  const before = { p99: await p99(world, () => expectServed(client)), rss: process.memoryUsage().rss };
  let closed = 0;
  const greeting = callBytes('/', Buffer.alloc(0)).subarray(0, 33);
  for (let index = 0; index < count; index++) {
    const socket = world.socket();
    socket.on('close', () => closed++);
    socket.resume();
    socket.write(greeting);
    if (index % 100 === 99) await expectServed(client);
  }
  // 4,096 stay, the client and those on their way aside; the others made room.
  while (closed < count - 4_096) await world.environment.sleep(20);
  const after = { p99: await p99(world, () => expectServed(client)), rss: process.memoryUsage().rss };
  expect(after.p99).toBeLessThan(Math.max(before.p99 * 2, before.p99 + 20));
  expect(after.rss - before.rss).toBeLessThan(1_000_000_000);
  // The client was never one of the idle ones: its watch has been open all the time.
  await world.state.create({ metadata: { ...kind, id: 'a' }, spec: {} });
  expect((await events.next()).value).toMatchObject({ type: 'created' });
  await events.return?.();
  await expectServed(await world.client());
});

test('100,000 watches of one client end at its quota, and others are served', async () => {
  const world = await World.serve('unix');
  await using _ = world;
  const client = await world.client();
  let refused = 0;
  for (let session = 0; session < 4; session++) {
    const greedy = world.session();
    await once(greedy, 'remoteSettings');
    for (let batch = 0; batch < 50; batch++) {
      const streams = Array.from({ length: 500 }, () => openCall(greedy, watch.path));
      const open: Promise<unknown>[] = [];
      const ends: Promise<unknown>[] = [];
      for (const stream of streams) {
        stream.end(watchRequest());
        open.push(once(stream, 'response'));
        if (batch * 500 >= 2_000)
          ends.push(
            ending(stream).then(({ code }) => {
              if (code === grpcCodes.resourceExhausted) refused++;
            }),
          );
      }
      await Promise.all(open);
      await Promise.all(ends);
      await expectServed(client);
    }
  }
  expect(refused).toBe(100_000 - 4 * 2_000);
  expect(world.environment.open.counts().watch).toBe(8_000);
});
