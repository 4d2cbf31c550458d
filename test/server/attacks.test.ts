import { once } from 'node:events';
import { deflateSync, gzipSync } from 'node:zlib';
import { describe, expect, test } from 'vitest';
import { makeResource } from '../../src/resource/index.ts';
import { grpcCodes, stateService } from '../../src/wire/index.ts';
import { callRaw, codec, ending, expectServed, framed, getRequest, kind, openCall, transports, World, watchRequest } from './world.ts';

const { get, create, watch } = stateService;
const big = (bytes: number): Buffer =>
  framed(
    create.requestSerialize({
      resource: codec.toWire(makeResource({ metadata: { ...kind, id: 'a' }, spec: { text: 'x'.repeat(bytes) } })),
      options: { owner: '' },
    }),
  );
const preface = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n');
const emptySettings = Buffer.from([0, 0, 0, 4, 0, 0, 0, 0, 0]);

describe.each(transports)('over %s', (transport) => {
  test('a request over the limit is RESOURCE_EXHAUSTED, by its size inflated when it is compressed', async () => {
    await using world = await World.serve(transport, { limits: { requestBytes: 100_000 } });
    const client = await world.client();
    const session = world.session();
    expect(await callRaw(session, create.path, big(200_000))).toMatchObject({ code: grpcCodes.resourceExhausted });
    const bomb = Buffer.alloc(64 * 1024 * 1024);
    for (const [encoding, pack] of [
      ['gzip', gzipSync],
      ['deflate', deflateSync],
    ] as const) {
      const packed = pack(bomb);
      expect(packed.length).toBeLessThan(100_000);
      expect(await callRaw(session, create.path, framed(packed, true), { 'grpc-encoding': encoding })).toMatchObject({
        code: grpcCodes.resourceExhausted,
        message: expect.stringContaining('when inflated'),
      });
      const small = pack(big(10).subarray(5));
      expect(await callRaw(session, create.path, framed(small, true), { 'grpc-encoding': encoding })).toMatchObject({ code: grpcCodes.ok });
      await world.state.destroy({ ...kind, id: 'a' });
    }
    // Our client is told exactly: the write was refused, it is not ambiguous.
    await expect(client.create({ metadata: { ...kind, id: 'b' }, spec: 'x'.repeat(200_000) })).rejects.toMatchObject({ code: 'Invalid' });
    expect((await world.state.list(kind)).items).toEqual([]);
    await expectServed(client);
  });

  test('a compression that nobody knows, one that lies, and bytes that do not inflate are errors of their call', async () => {
    await using world = await World.serve(transport);
    const session = world.session();
    expect(await callRaw(session, get.path, getRequest('a'), { 'grpc-encoding': 'snappy' })).toMatchObject({
      code: grpcCodes.unimplemented,
    });
    expect(await callRaw(session, get.path, framed(Buffer.from('no gzip'), true), { 'grpc-encoding': 'gzip' })).toMatchObject({
      code: grpcCodes.internal,
    });
    expect(await callRaw(session, get.path, framed(Buffer.from('plain'), true))).toMatchObject({ code: grpcCodes.internal });
    await expectServed(await world.client());
  });

  test('two messages, none, or half of one, where there must be one, are errors of their call', async () => {
    await using world = await World.serve(transport);
    const session = world.session();
    for (const body of [
      Buffer.concat([getRequest('a'), getRequest('a')]),
      Buffer.alloc(0),
      getRequest('a').subarray(0, 9),
      Buffer.from([0, 0]),
    ])
      expect(await callRaw(session, get.path, body)).toMatchObject({ code: grpcCodes.internal });
    expect(await callRaw(session, get.path, framed(Buffer.from([0x0a, 0x7f])))).toMatchObject({ code: grpcCodes.invalidArgument });
    expect(await callRaw(session, get.path, getRequest('a'), { 'grpc-timeout': 'soon' })).toMatchObject({ code: grpcCodes.internal });
    expect(await callRaw(session, get.path, getRequest('a'))).toMatchObject({ code: grpcCodes.notFound });
  });

  test('frames that are none end their connection, not the process', async () => {
    // After some, nothing is read any more: the connection then ends as one that gives no sign of life.
    await using world = await World.serve(transport, { limits: { keepaliveMs: 200, keepaliveTimeoutMs: 200 } });
    const client = await world.client();
    for (const bytes of [
      Buffer.from('GET / HTTP/1.1\r\n\r\n'),
      Buffer.concat([preface, Buffer.alloc(10, 0xff)]),
      Buffer.alloc(65_536, 0xff),
      // A frame larger than was allowed, headers of an even stream, and headers that do not unpack.
      Buffer.concat([preface, emptySettings, Buffer.from([0xff, 0xff, 0xff, 1, 4, 0, 0, 0, 1])]),
      Buffer.concat([preface, emptySettings, Buffer.from([0, 0, 1, 1, 4, 0, 0, 0, 2, 0x82])]),
      Buffer.concat([preface, emptySettings, Buffer.from([0, 0, 4, 1, 4, 0, 0, 0, 1, 0xff, 0xff, 0xff, 0xff])]),
    ]) {
      const socket = world.socket();
      socket.resume();
      socket.write(bytes);
      await once(socket, 'close');
    }
    await expectServed(client);
  });

  test('streams that are opened and reset in a flood end their connection, others are served', async () => {
    await using world = await World.serve(transport);
    const client = await world.client();
    const session = world.session();
    let resets = 0;
    while (!session.closed && !session.destroyed && resets < 50_000) {
      for (let index = 0; index < 100 && !session.closed && !session.destroyed; index++, resets++) {
        const stream = openCall(session, get.path);
        stream.close(8);
      }
      await world.environment.breathe();
    }
    expect(session.closed || session.destroyed).toBe(true);
    await expectServed(client);
  });

  test('who greets slowly, or sends headers or a body slowly, is cut; others are served', async () => {
    await using world = await World.serve(transport, { limits: { requestMs: 300, keepaliveMs: 300, keepaliveTimeoutMs: 300 } });
    const client = await world.client();
    const silent = world.socket();
    const halfGreeting = world.socket();
    halfGreeting.write(preface.subarray(0, 10));
    // Headers that never end: no sign of life can be given between them.
    const slowHeaders = world.socket();
    slowHeaders.write(Buffer.concat([preface, emptySettings, Buffer.from([0, 0, 1, 1, 0, 0, 0, 0, 1, 0x82])]));
    for (const socket of [silent, halfGreeting, slowHeaders]) socket.resume();
    const closed = [silent, halfGreeting, slowHeaders].map((socket) => once(socket, 'close'));
    const slowBody = openCall(world.session(), create.path);
    slowBody.write(big(1000).subarray(0, 500));
    expect(await ending(slowBody)).toMatchObject({
      code: grpcCodes.deadlineExceeded,
      message: expect.stringContaining('did not come in time'),
    });
    await Promise.all(closed);
    // One that answers pings stays, however idle it is.
    await world.environment.sleep(1_000);
    await expectServed(client);
  });

  test('paths that are not exactly a call of ours are UNIMPLEMENTED, and what is no call is refused', async () => {
    await using world = await World.serve(transport);
    const session = world.session();
    for (const path of [
      '/cosi.resource.State/get',
      '/cosi.resource.State//Get',
      '//cosi.resource.State/Get',
      '/cosi.resource.State/Get/',
      '/cosi.resource.State/Get?a=b',
      '/cosi.resource.State/%47et',
      '/x/../cosi.resource.State/Get',
      '/COSI.resource.State/Get',
      'cosi.resource.State/Get',
      '*',
      '/',
    ]) {
      const answer = await callRaw(session, path, getRequest('a'));
      // A path without a slash is a stream reset by the transport.
      expect(answer.http === 0 || answer.code === grpcCodes.unimplemented, path).toBe(true);
    }
    expect(await callRaw(session, get.path, getRequest('a'), { ':method': 'GET' })).toMatchObject({ http: 405 });
    expect(await callRaw(session, get.path, getRequest('a'), { 'content-type': 'text/plain' })).toMatchObject({ http: 415 });
    expect(await callRaw(session, get.path, getRequest('a'), { 'content-type': 'application/grpc-web' })).toMatchObject({ http: 415 });
    expect(await callRaw(session, get.path, getRequest('a'))).toMatchObject({ code: grpcCodes.notFound });
  });

  test('headers that are too many or too large end their stream or connection, others are served', async () => {
    await using world = await World.serve(transport);
    const client = await world.client();
    // Limits hold once the client has them.
    const [first, second] = [world.session(), world.session()];
    await Promise.all([first, second].map((session) => once(session, 'remoteSettings')));
    const large = await callRaw(first, get.path, getRequest('a'), { 'x-large': 'x'.repeat(20_000) });
    expect(large.code).not.toBe(grpcCodes.notFound);
    const many = Object.fromEntries(Array.from({ length: 200 }, (_, index) => [`x-${index}`, 'y']));
    expect((await callRaw(second, get.path, getRequest('a'), many)).code).not.toBe(grpcCodes.notFound);
    await expectServed(client);
  });

  test('a deadline of the caller ends the call, and what it waits for', async () => {
    await using world = await World.serve(transport);
    await world.state.create({ metadata: { ...kind, id: 'a', finalizers: ['f'] }, spec: {} });
    const body = framed(stateService.teardownAndDestroy.requestSerialize({ ...kind, id: 'a', options: { owner: '' } }));
    const { path } = stateService.teardownAndDestroy;
    expect(await callRaw(world.session(), path, body, { 'grpc-timeout': '200m' })).toMatchObject({ code: grpcCodes.deadlineExceeded });
    expect(await callRaw(world.session(), watch.path, watchRequest(), { 'grpc-timeout': '200m' })).toMatchObject({
      code: grpcCodes.deadlineExceeded,
    });
    // The waiting inside the server ended too: nothing watches the store any more.
    while ((world.environment.open.counts().watch ?? 0) > 0) await world.environment.sleep(10);
  });
});
