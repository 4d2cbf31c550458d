import { once } from 'node:events';
import type { ClientHttp2Session, ClientHttp2Stream } from 'node:http2';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { describe, expect, test } from 'vitest';
import { makeResource } from '../../src/resource/index.ts';
import { grpcCodes, stateService } from '../../src/wire/index.ts';
import {
  callBytes,
  callRaw,
  codec,
  ending,
  expectServed,
  framed,
  getRequest,
  kind,
  openCall,
  transports,
  World,
  watchRequest,
} from './world.ts';

const { get, create, watch } = stateService;

setFlagsFromString('--expose-gc');
const collect = runInNewContext('gc') as () => void;

/** A watch that is established, and not read any further. */
async function stalledWatch(session: ClientHttp2Session): Promise<ClientHttp2Stream> {
  const stream = openCall(session, watch.path);
  stream.end(watchRequest());
  await once(stream, 'response');
  return stream;
}

describe.each(transports)('over %s', (transport) => {
  test('watches of a connection, and of all, have a quota; who ends one may have another; others are served', async () => {
    await using world = await World.serve(transport, { limits: { watchesPerConnection: 20, watchesInTotal: 30 } });
    const client = await world.client();
    const greedy = world.session();
    const answers = Array.from({ length: 500 }, () => openCall(greedy, watch.path));
    const refused = answers.slice(20).map(ending);
    for (const stream of answers) stream.end(watchRequest());
    for (const answer of await Promise.all(refused))
      expect(answer).toMatchObject({ code: grpcCodes.resourceExhausted, message: expect.stringContaining('watchesPerConnection') });
    const second = world.session();
    for (let index = 0; index < 10; index++) await stalledWatch(second);
    expect(await callRaw(second, watch.path, watchRequest())).toMatchObject({
      code: grpcCodes.resourceExhausted,
      message: expect.stringContaining('watchesInTotal'),
    });
    // Calls that are no watches have room still, also of the greedy one.
    expect(await callRaw(greedy, get.path, getRequest('a'))).toMatchObject({ code: grpcCodes.notFound });
    await expect(client.watchKind(kind)).rejects.toMatchObject({ code: 'Throttled' });
    const first = answers[0] as ClientHttp2Stream;
    first.close(8);
    await once(first, 'close');
    for (;;) {
      const again = await client.watchKind(kind).catch(() => undefined);
      if (again === undefined) continue;
      await again[Symbol.asyncDispose]();
      break;
    }
  });

  test('calls that are open at once have a quota for each connection', async () => {
    await using world = await World.serve(transport, { limits: { callsPerConnection: 10 } });
    const client = await world.client();
    const greedy = world.session();
    // Opened, and never finished.
    const open = Array.from({ length: 10 }, () => openCall(greedy, get.path));
    for (const stream of open) stream.write(Buffer.from([0]));
    expect(await callRaw(greedy, get.path, getRequest('a'))).toMatchObject({
      code: grpcCodes.resourceExhausted,
      message: expect.stringContaining('callsPerConnection'),
    });
    await expectServed(client);
    for (const stream of open) stream.end(getRequest('a').subarray(1));
    for (const stream of open) if (!stream.closed) await ending(stream);
    expect(await callRaw(greedy, get.path, getRequest('a'))).toMatchObject({ code: grpcCodes.notFound });
  });

  test('requests on their way have a quota of bytes, given back when they end', async () => {
    await using world = await World.serve(transport, { limits: { requestBytesPerConnection: 1_000_000 } });
    const client = await world.client();
    const greedy = world.session();
    const body = framed(
      create.requestSerialize({
        resource: codec.toWire(makeResource({ metadata: { ...kind, id: 'a' }, spec: 'x'.repeat(200_000) })),
        options: { owner: '' },
      }),
    );
    const halves = Array.from({ length: 10 }, () => openCall(greedy, create.path));
    const ends = halves.map(ending);
    for (const stream of halves) stream.write(body.subarray(0, 150_000));
    expect(await Promise.race(ends)).toMatchObject({ code: grpcCodes.resourceExhausted });
    await client.create({ metadata: { ...kind, id: 'b' }, spec: 'x'.repeat(200_000) });
    for (const stream of halves) stream.close(8);
    await Promise.all(ends);
    for (;;) if ((await callRaw(greedy, create.path, body)).code === grpcCodes.ok) break;
  });

  test('answers that are not read have a quota of bytes', async () => {
    await using world = await World.serve(transport, { limits: { answerBytesPerConnection: 1_000_000 } });
    const client = await world.client();
    await world.state.create({ metadata: { ...kind, id: 'a' }, spec: 'x'.repeat(300_000) });
    const greedy = world.session();
    const unread = Array.from({ length: 20 }, () => openCall(greedy, get.path));
    const codes: number[] = [];
    for (const stream of unread) {
      stream.on('response', (headers) => void (headers['grpc-status'] !== undefined && codes.push(Number(headers['grpc-status']))));
      stream.end(getRequest('a'));
    }
    while (codes.length < 17) await world.environment.sleep(5);
    expect(new Set(codes)).toEqual(new Set([grpcCodes.resourceExhausted]));
    await client.get({ ...kind, id: 'a' });
    for (const stream of unread) stream.resume();
    for (;;) if ((await callRaw(greedy, get.path, getRequest('a'))).code === grpcCodes.ok) break;
  });

  test('a conversation whose answers are not read is not read either', async () => {
    const world = await World.serve(transport);
    await using _ = world;
    const stream = openCall(world.session(), '/grpc.reflection.v1.ServerReflection/ServerReflectionInfo');
    // Every question has the largest answer.
    const question = framed(Buffer.concat([Buffer.from([0x22, 22]), Buffer.from('steadystate.v1.Control')]));
    const before = process.memoryUsage().rss;
    let asked = 0;
    for (; asked < 50_000 && !stream.writableNeedDrain; asked++) {
      stream.write(question);
      if (asked % 100 === 0) await world.environment.sleep(1);
    }
    expect(asked).toBeLessThan(50_000);
    expect(process.memoryUsage().rss - before).toBeLessThan(300_000_000);
    await expectServed(await world.client());
  });

  test('a connection over the limit takes the place of the one that was idle longest; with none idle it is refused', async () => {
    await using world = await World.serve(transport, { limits: { connections: 4 } });
    const sessions: ClientHttp2Session[] = [];
    const add = async (): Promise<ClientHttp2Session> => {
      const session = world.session();
      await Promise.race([once(session, 'remoteSettings'), once(session, 'close')]);
      sessions.push(session);
      return session;
    };
    const [oldest, busy] = [await add(), await add()];
    await stalledWatch(busy);
    await add();
    await add();
    const closed = once(oldest, 'close');
    const newest = await add();
    await closed;
    expect(await callRaw(newest, get.path, getRequest('a'))).toMatchObject({ code: grpcCodes.notFound });
    for (const session of sessions.filter((one) => one !== busy && !one.closed && !one.destroyed)) await stalledWatch(session);
    const refused = await add();
    if (!refused.destroyed) await once(refused, 'close');
    expect(busy.closed).toBe(false);
  });

  test('a client with many calls does not hold up one with few: they take turns', async () => {
    const world = await World.serve(transport);
    await using _ = world;
    const order: string[] = [];
    const ask = async (session: ClientHttp2Session, name: string): Promise<void> => {
      await callRaw(session, get.path, getRequest(name));
      order.push(name);
    };
    const [greedy, modest] = [world.session(), world.session()];
    await Promise.all([ask(greedy, 'warm'), ask(modest, 'warm')]);
    order.length = 0;
    let stop = false;
    const flood = Promise.all(
      Array.from({ length: 64 }, async () => {
        while (!stop) await ask(greedy, 'greedy');
      }),
    );
    const between: number[] = [];
    while (between.length < 60) {
      const before = order.length;
      await ask(modest, 'modest');
      between.push(order.length - before - 1);
    }
    stop = true;
    await flood;
    // In one line, 64 of the other's calls would stand before each; a few turns of 16 may pass while a call travels.
    between.sort((left, right) => left - right);
    expect(between[30]).toBeLessThan(64);
  });

  test('clients that do not read cost bounded memory, and nobody else anything', async () => {
    const world = await World.serve(transport);
    await using _ = world;
    const client = await world.client();
    const reading = await client.watchKind(kind);
    const stalled = world.session();
    for (let index = 0; index < 100; index++) (await stalledWatch(stalled)).pause();
    // One whose socket is not read either.
    world.socket().write(callBytes(watch.path, watchRequest()));
    const text = 'x'.repeat(20_000);
    let current = await world.state.create({ metadata: { ...kind, id: 'a' }, spec: { text, index: 0 } });
    collect();
    const before = process.memoryUsage();
    const writes = 4_000;
    const events = reading[Symbol.asyncIterator]();
    const seen = (async () => {
      for (let revision = 0; revision < Number(current.metadata.version) || revision < writes; ) {
        const { value } = await events.next();
        revision = value?.revision ?? revision;
      }
    })();
    for (let index = 1; index < writes; index++) {
      current = await world.state.update({ metadata: current.metadata, spec: { text, index } });
      if (index % 50 === 0) await world.environment.breathe();
    }
    await seen;
    collect();
    const after = process.memoryUsage();
    // 80 MB were written, and would be 8 GB for all who do not read.
    const grown = after.heapUsed + after.external + after.arrayBuffers - before.heapUsed - before.external - before.arrayBuffers;
    expect(grown).toBeLessThan(120_000_000);
    await reading[Symbol.asyncDispose]();
    await expectServed(client);
  });

  test('limits that are no whole numbers above zero are refused with their names', async () => {
    for (const value of [0, -1, 1.5, Number.NaN])
      await expect(World.serve(transport, { limits: { connections: value } })).rejects.toMatchObject({
        code: 'Invalid',
        message: expect.stringContaining('limits.connections'),
      });
  });
});
