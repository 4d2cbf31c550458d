import { once } from 'node:events';
import { expect, test } from 'vitest';
import { stateService } from '../../src/wire/index.ts';
import { callHeaders, codes, flags, frame, greeting, literal, preface, RawClient, setting, types, uint32 } from './raw-http2.ts';
import { ending, expectServed, framed, getRequest, kind, openCall, transports, World, watchRequest } from './world.ts';

const { path } = stateService.get;
const whole = flags.endHeaders | flags.endStream;
const headers = (stream: number, bits: number = flags.endHeaders, block = callHeaders(path)): Buffer =>
  frame(types.headers, bits, stream, block);
const body = (stream: number): Buffer => frame(types.data, flags.endStream, stream, getRequest('a'));
const notFound = { 'grpc-status': '5' };
const many = (count: number, one: Buffer): Buffer => Buffer.concat(Array.from({ length: count }, () => one));

const noPath = Buffer.of(0x83, 0x86);

/** What ends a connection, and the code that the client is told. */
const fatal: Readonly<Record<string, readonly [number, ...(readonly Buffer[])]>> = {
  'another protocol': [codes.protocol, Buffer.from('GET / HTTP/1.1\r\n\r\n')],
  'a first frame that is not the settings': [codes.protocol, preface, frame(types.ping, 0, 0, Buffer.alloc(8))],
  'a frame that is too large': [codes.frameSize, greeting, frame(types.data, 0, 1, Buffer.alloc(16_385))],
  'settings of a stream': [codes.protocol, greeting, frame(types.settings, 0, 1)],
  'settings that are not whole': [codes.frameSize, greeting, frame(types.settings, 0, 0, Buffer.alloc(5))],
  'an acknowledgement with something in it': [codes.frameSize, greeting, frame(types.settings, flags.ack, 0, Buffer.alloc(6))],
  'a window that is too large from the start': [codes.flowControl, greeting, frame(types.settings, 0, 0, setting(4, 2 ** 31))],
  'frames smaller than there are': [codes.protocol, greeting, frame(types.settings, 0, 0, setting(5, 100))],
  'pushing that is neither on nor off': [codes.protocol, greeting, frame(types.settings, 0, 0, setting(2, 2))],
  'a ping of a stream': [codes.protocol, greeting, frame(types.ping, 0, 1, Buffer.alloc(8))],
  'a ping of another length': [codes.frameSize, greeting, frame(types.ping, 0, 0, Buffer.alloc(7))],
  'a reset of another length': [codes.frameSize, greeting, frame(types.reset, 0, 1, Buffer.alloc(3))],
  'a priority of another length': [codes.frameSize, greeting, frame(types.priority, 0, 1, Buffer.alloc(4))],
  'a farewell of a stream': [codes.protocol, greeting, frame(types.goAway, 0, 1, Buffer.alloc(8))],
  'a push': [codes.protocol, greeting, frame(types.push, flags.endHeaders, 1, Buffer.alloc(4))],
  'headers of no stream': [codes.protocol, greeting, headers(0)],
  'headers of an even stream': [codes.protocol, greeting, headers(2)],
  'data of a stream that is not there': [codes.protocol, greeting, body(1)],
  'data of no stream': [codes.protocol, greeting, frame(types.data, 0, 0, Buffer.alloc(1))],
  'a reset of a stream that is not there': [codes.protocol, greeting, frame(types.reset, 0, 5, uint32(8))],
  'a window of a stream that is not there': [codes.protocol, greeting, frame(types.windowUpdate, 0, 5, uint32(1))],
  'a window that grows by nothing': [codes.protocol, greeting, frame(types.windowUpdate, 0, 0, uint32(0))],
  'a window that grows too large': [codes.flowControl, greeting, frame(types.windowUpdate, 0, 0, uint32(2 ** 31 - 1))],
  'a window of a stream that grows too large': [
    codes.flowControl,
    greeting,
    headers(1),
    frame(types.windowUpdate, 0, 1, uint32(2 ** 31 - 1)),
  ],
  'a continuation of nothing': [codes.protocol, greeting, frame(types.continuation, flags.endHeaders, 1)],
  'a continuation of another stream': [
    codes.protocol,
    greeting,
    headers(1, 0),
    frame(types.continuation, flags.endHeaders, 3, Buffer.alloc(0)),
  ],
  'a frame in the middle of headers': [codes.protocol, greeting, headers(1, 0), frame(types.ping, 0, 0, Buffer.alloc(8))],
  'headers without an end': [codes.calm, greeting, headers(1, 0), many(20, frame(types.continuation, 0, 1))],
  'headers without an end, that are large': [
    codes.calm,
    greeting,
    headers(1, 0),
    many(5, frame(types.continuation, 0, 1, Buffer.alloc(16_000, 0x82))),
  ],
  'more padding than there is': [codes.protocol, greeting, headers(1), frame(types.data, flags.padded, 1, Buffer.of(5, 0, 0, 0))],
  'a field that is not there': [codes.compression, greeting, headers(1, whole, Buffer.of(0xff, 0x80, 0x01))],
  'a field zero': [codes.compression, greeting, headers(1, whole, Buffer.of(0x80))],
  'a number without an end': [codes.compression, greeting, headers(1, whole, Buffer.alloc(20, 0xff))],
  'a text longer than its block': [codes.compression, greeting, headers(1, whole, Buffer.of(0, 10, 0x61))],
  'a table larger than was allowed': [codes.compression, greeting, headers(1, whole, Buffer.of(0x3f, 0xe2, 0x1f, 0x82))],
  'a table that changes in the middle': [codes.compression, greeting, headers(1, whole, Buffer.of(0x82, 0x20))],
  'text packed with the end mark': [codes.compression, greeting, headers(1, whole, Buffer.of(0, 0x84, 0xff, 0xff, 0xff, 0xff, 0))],
  'text filled up with zeros': [codes.compression, greeting, headers(1, whole, Buffer.of(0, 0x81, 0x18, 0))],
  'text filled up by a whole byte': [codes.compression, greeting, headers(1, whole, Buffer.of(0, 0x82, 0x1f, 0xff, 0))],
  // What is asked is not read while the answers are not.
  'more than the window of a stream': [
    codes.flowControl,
    preface,
    frame(types.settings, 0, 0, setting(4, 0)),
    headers(1, flags.endHeaders, callHeaders('/grpc.reflection.v1.ServerReflection/ServerReflectionInfo')),
    frame(types.data, 0, 1, framed(Buffer.concat([Buffer.of(0x22, 22), Buffer.from('steadystate.v1.Control')]))),
    many(18, frame(types.data, 0, 1, Buffer.alloc(16_384))),
  ],
  // Many that are not read, each within its window.
  'more than is kept of what is not read': [
    codes.calm,
    preface,
    frame(types.settings, 0, 0, setting(4, 0)),
    ...Array.from({ length: 80 }, (_, nth) => [
      headers(2 * nth + 1, flags.endHeaders, callHeaders('/grpc.reflection.v1.ServerReflection/ServerReflectionInfo')),
      frame(types.data, 0, 2 * nth + 1, framed(Buffer.concat([Buffer.of(0x22, 22), Buffer.from('steadystate.v1.Control')]))),
    ]).flat(),
    ...Array.from({ length: 80 }, (_, nth) => many(15, frame(types.data, 0, 2 * nth + 1, Buffer.alloc(16_384)))),
  ],
  'a flood of settings': [codes.calm, greeting, many(3_000, frame(types.settings, 0, 0))],
  'a flood of empty data': [codes.calm, greeting, headers(1), many(3_000, frame(types.data, 0, 1))],
  'a flood of priorities': [codes.calm, greeting, many(3_000, frame(types.priority, 0, 1, Buffer.alloc(5)))],
  'a flood of frames that nobody knows': [codes.calm, greeting, many(3_000, frame(0x42, 0, 0))],
  'a flood of acknowledgements': [codes.calm, greeting, many(3_000, frame(types.ping, flags.ack, 0, Buffer.alloc(8)))],
  'a flood of requests that are none': [
    codes.calm,
    greeting,
    ...Array.from({ length: 6_000 }, (_, n) => headers(2 * n + 1, whole, noPath)),
  ],
};

/** What ends a stream alone, with the code. */
const malformed: Readonly<Record<string, Buffer>> = {
  'no path': Buffer.of(0x83, 0x86),
  'no method': Buffer.concat([Buffer.of(0x86), literal(':path', path)]),
  'no scheme': Buffer.concat([Buffer.of(0x83), literal(':path', path)]),
  'an empty path': Buffer.concat([Buffer.of(0x83, 0x86), literal(':path', '')]),
  'two methods': Buffer.concat([Buffer.of(0x83, 0x83, 0x86), literal(':path', path)]),
  'an upper case name': callHeaders(path, literal('X-Name', 'a')),
  'a name with a space': callHeaders(path, literal('x name', 'a')),
  'an empty name': callHeaders(path, literal('', 'a')),
  'a value with a line break': callHeaders(path, literal('x-name', 'a\r\nb')),
  'a value with a zero': callHeaders(path, literal('x-name', 'a\0b')),
  'a value that begins with a space': callHeaders(path, literal('x-name', ' a')),
  'a header of the connection': callHeaders(path, literal('connection', 'close')),
  'te that is something else': callHeaders(path, literal('te', 'gzip')),
  'a pseudo header behind others': callHeaders(path, literal(':authority', 'b')),
  'a pseudo header that there is not': Buffer.concat([literal(':other', 'a'), callHeaders(path)]),
  'the pseudo header of an answer': Buffer.concat([Buffer.of(0x88), callHeaders(path)]),
};

test.each(transports)(
  "over %s, what a client must not send ends its connection with the code for it, and nobody else's",
  async (transport) => {
    await using world = await World.serve(transport);
    const client = await world.client();
    for (const [name, [code, ...frames]] of Object.entries(fatal)) {
      const raw = new RawClient(world.socket());
      raw.send(...frames);
      const found = await raw.farewell();
      // A connection that is cut while the client still sends may lose the farewell on its way.
      const maySuffer = transport === 'loopback' || Buffer.concat(frames).length > 30_000;
      if (!(maySuffer && found === undefined)) expect(found, name).toBe(code);
    }
    await expectServed(client);
  },
);

test('a request that HTTP/2 calls malformed is reset; the connection goes on', async () => {
  await using world = await World.serve('unix');
  const raw = new RawClient(world.socket());
  raw.send(greeting);
  let stream = 1;
  for (const [name, block] of Object.entries(malformed)) {
    raw.send(headers(stream, whole, block));
    expect(await raw.end(stream), name).toBe(codes.protocol);
    stream += 2;
  }
  raw.send(headers(stream), body(stream));
  expect(await raw.end(stream)).toMatchObject(notFound);
});

test('what is allowed, however odd, is answered', async () => {
  await using world = await World.serve('unix');
  const raw = new RawClient(world.socket());
  const block = callHeaders(path);
  const priority = Buffer.alloc(5);
  const pad = (bytes: Buffer): Buffer => Buffer.concat([Buffer.of(3), bytes, Buffer.alloc(3)]);
  const request = getRequest('a');
  raw.send(greeting, frame(types.settings, 0, 0, Buffer.concat([setting(1, 0), setting(0xff, 7), setting(5, 20_000)])));
  const ways: readonly ((stream: number) => readonly Buffer[])[] = [
    (stream) => [headers(stream), body(stream)],
    (stream) => [frame(types.headers, flags.endHeaders | flags.padded, stream, pad(block)), body(stream)],
    (stream) => [frame(types.headers, flags.endHeaders | flags.priority, stream, Buffer.concat([priority, block])), body(stream)],
    (stream) => [
      frame(types.headers, 0, stream, block.subarray(0, 10)),
      frame(types.continuation, 0, stream, block.subarray(10, 11)),
      frame(types.continuation, flags.endHeaders, stream, block.subarray(11)),
      body(stream),
    ],
    (stream) => [headers(stream), frame(types.data, flags.padded | flags.endStream, stream, pad(request))],
    (stream) => [
      headers(stream),
      ...Array.from(request, (_, at) => frame(types.data, 0, stream, request.subarray(at, at + 1))),
      frame(types.data, flags.endStream, stream),
    ],
    (stream) => [
      headers(stream),
      frame(types.data, 0, stream, request),
      frame(types.headers, whole, stream, literal('x-behind', 'a')),
      frame(types.windowUpdate, 0, stream, uint32(1)),
    ],
    (stream) => [headers(stream), frame(0x99, 0xff, stream, Buffer.alloc(3)), frame(types.priority, 0, stream, priority), body(stream)],
    // The table is emptied and filled again, and what was put into it is used.
    (stream) => [headers(stream, flags.endHeaders, Buffer.concat([Buffer.of(0x20, 0x3f, 0xe1, 0x1f), block])), body(stream)],
    (stream) => [
      headers(stream, flags.endHeaders, Buffer.concat([block, Buffer.of(0x40), literal('x-kept', 'a').subarray(1)])),
      body(stream),
    ],
    (stream) => [headers(stream, flags.endHeaders, Buffer.concat([block, Buffer.of(0xbe)])), body(stream)],
  ];
  for (const [index, way] of ways.entries()) {
    const stream = 2 * index + 1;
    raw.send(...way(stream));
    expect(await raw.end(stream), `the way ${index}`).toMatchObject(notFound);
    expect(await raw.answers()).toBe(true);
  }
  // A byte at a time, greeting and all.
  const slow = new RawClient(world.socket());
  for (const byte of Buffer.concat([greeting, headers(1), body(1)])) slow.socket.write(Buffer.of(byte));
  expect(await slow.end(1)).toMatchObject(notFound);
});

test('what comes behind the end of a stream does not harm the others', async () => {
  await using world = await World.serve('unix');
  const raw = new RawClient(world.socket());
  raw.send(greeting, frame(types.headers, flags.endHeaders, 1, callHeaders(stateService.watch.path)));
  raw.send(frame(types.data, flags.endStream, 1, watchRequest()), frame(types.data, 0, 1, Buffer.alloc(3)));
  expect(await raw.end(1)).toBe(codes.streamClosed);
  raw.send(headers(3), body(3));
  expect(await raw.end(3)).toMatchObject(notFound);
  // Of streams that have been, nothing is known any more.
  raw.send(
    frame(types.data, 0, 3, Buffer.alloc(3)),
    headers(1),
    frame(types.reset, 0, 3, uint32(8)),
    frame(types.windowUpdate, 0, 1, uint32(1)),
  );
  raw.send(headers(5), frame(types.headers, flags.endHeaders, 5, literal('x-behind', 'but not at the end')));
  expect(await raw.end(5)).toBe(codes.protocol);
  raw.send(headers(7), body(7));
  expect(await raw.end(7)).toMatchObject(notFound);
});

test('what was on its way when a call was refused is no fault of the client', async () => {
  await using world = await World.serve('unix');
  const raw = new RawClient(world.socket());
  raw.send(greeting);
  const last = 2 * 1_500 - 1;
  const unknown = callHeaders('/no.Service/Call');
  for (let stream = 1; stream <= last; stream += 2) raw.send(headers(stream, flags.endHeaders, stream % 4 === 1 ? unknown : noPath));
  await raw.next(({ type, stream }) => type === types.reset && stream === last);
  expect(await raw.answers()).toBe(true);
  for (let stream = 1; stream <= last; stream += 2) raw.send(frame(types.data, 0, stream, getRequest('a')), body(stream));
  raw.send(headers(last + 2), body(last + 2));
  expect(await raw.end(last + 2)).toMatchObject(notFound);
  // Behind the end there is nothing more to come.
  raw.send(...Array.from({ length: 1_500 }, () => body(1)));
  expect(await raw.farewell()).toBe(codes.calm);
});

test('answers keep to the windows of the client, in frames that it takes', async () => {
  await using world = await World.serve('unix');
  const text = 'x'.repeat(100_000);
  await world.state.create({ metadata: { ...kind, id: 'a' }, spec: { text } });
  const raw = new RawClient(world.socket());
  raw.send(preface, frame(types.settings, 0, 0, setting(4, 10)), headers(1), body(1));
  const isData = ({ type }: { readonly type: number }): boolean => type === types.data;
  const first = (await raw.next(isData))?.payload as Buffer;
  expect(first.length).toBe(10);
  // Nothing more comes until there is room: a window that grows, and shrinks again below zero.
  expect(await raw.answers()).toBe(true);
  raw.send(frame(types.settings, 0, 0, setting(4, 30_010)));
  const parts = [first, (await raw.next(isData))?.payload, (await raw.next(isData))?.payload] as Buffer[];
  expect(parts.map(({ length }) => length)).toEqual([10, 16_384, 13_616]);
  raw.send(frame(types.settings, 0, 0, setting(4, 0)), frame(types.windowUpdate, 0, 1, uint32(30_020)));
  parts.push((await raw.next(isData))?.payload as Buffer);
  // The connection has room for the rest of its 65,535; then for all.
  expect(parts.at(-1)?.length).toBe(10);
  raw.send(frame(types.windowUpdate, 0, 1, uint32(1_000_000)));
  const sum = (): number => parts.reduce((all, { length }) => all + length, 0);
  while (sum() < 65_535) parts.push((await raw.next(isData))?.payload as Buffer);
  expect(sum()).toBe(65_535);
  expect(await raw.answers()).toBe(true);
  raw.send(frame(types.windowUpdate, 0, 0, uint32(1_000_000)));
  while (sum() < 100_000) parts.push((await raw.next(isData))?.payload as Buffer);
  expect(Buffer.concat(parts).includes(text)).toBe(true);
  expect(await raw.end(1)).toEqual(expect.objectContaining({ 'grpc-status': '0' }));
  // Pieces that are large go as they are, and whole.
  raw.send(frame(types.settings, 0, 0, setting(4, 1_000_000)), headers(3), body(3));
  let got = 0;
  while (got < 100_000) got += (await raw.next((one) => one.stream === 3 && isData(one)))?.payload.length ?? Number.NaN;
  expect(await raw.end(3)).toEqual(expect.objectContaining({ 'grpc-status': '0' }));
});

test('a request larger than a window comes in whole', async () => {
  await using world = await World.serve('unix');
  const resource = { metadata: { ...kind, id: 'a' }, spec: { text: 'x'.repeat(3_000_000) } };
  await (await world.client()).create(resource);
  expect((await world.state.get({ ...kind, id: 'a' })).spec).toEqual(resource.spec);
});

test('headers of every character come as they are, long ones too', async () => {
  await using world = await World.serve('unix');
  const session = world.session();
  const characters = Array.from({ length: 0x5f }, (_, index) => String.fromCharCode(0x20 + index)).join('');
  // Those that nobody may send are tried above; the answer tells the path that was asked for.
  const asked = `/${characters.slice(1)}${'~'.repeat(90)}`;
  const stream = openCall(session, asked, { 'x-all': `a${characters}b`, 'x-long': 'y'.repeat(9_000) });
  stream.end(getRequest('a'));
  const { message } = await ending(stream);
  expect(decodeURIComponent(message.replace(/%(?![0-9A-F]{2})/g, '%25'))).toContain(asked);
});

test('a server that stops says so, finishes what was asked, and takes nothing more', async () => {
  const world = await World.serve('unix');
  await using _ = world;
  await world.state.create({ metadata: { ...kind, id: 'a', finalizers: ['f'] }, spec: {} });
  const raw = new RawClient(world.socket());
  const wait = stateService.teardownAndDestroy;
  raw.send(greeting, headers(1, flags.endHeaders, callHeaders(wait.path)));
  raw.send(frame(types.data, flags.endStream, 1, framed(wait.requestSerialize({ ...kind, id: 'a', options: { owner: '' } }))));
  while ((await world.state.get({ ...kind, id: 'a' })).metadata.phase === 'running') await world.environment.sleep(1);
  const stopped = world.server.stop(10_000);
  const farewell = await raw.next(({ type }) => type === types.goAway);
  expect([farewell?.payload.readUInt32BE(0), farewell?.payload.readUInt32BE(4)]).toEqual([1, codes.none]);
  // What comes too late is as good as never sent: the client may ask elsewhere.
  raw.send(headers(3), body(3));
  expect(await raw.answers()).toBe(true);
  const current = await world.state.get({ ...kind, id: 'a' });
  await world.state.update({ metadata: { ...current.metadata, finalizers: [] }, spec: {} }, { expectedPhase: 'any' });
  expect(await raw.end(1)).toMatchObject({ 'grpc-status': '0' });
  await raw.closed();
  await stopped;
});

test('one that asks without end and reads nothing is not read either', async () => {
  await using world = await World.serve('unix', { limits: { keepaliveMs: 300, keepaliveTimeoutMs: 300 } });
  const client = await world.client();
  await world.state.create({ metadata: { ...kind, id: 'a' }, spec: { text: 'x'.repeat(10_000) } });
  const socket = world.socket();
  socket.pause();
  socket.write(Buffer.concat([greeting, frame(types.settings, 0, 0, setting(4, 2 ** 31 - 1))]));
  socket.write(frame(types.windowUpdate, 0, 0, uint32(2 ** 31 - 1 - 65_535)));
  const before = process.memoryUsage().rss;
  let closed = false;
  socket.on('close', () => {
    closed = true;
  });
  // Pings and calls alike; it gives no sign of life, and is cut in the end.
  for (let stream = 1; !closed; ) {
    const room = socket.write(Buffer.concat([frame(types.ping, 0, 0, Buffer.alloc(8)), headers(stream), body(stream)]));
    stream += 2;
    if (!room) await world.environment.sleep(1);
    if (socket.writableLength > 10_000_000) break;
  }
  expect(process.memoryUsage().rss - before).toBeLessThan(200_000_000);
  await expectServed(client);
  if (!closed) {
    socket.destroy();
    await once(socket, 'close');
  }
});

test('frames that are changed by chance end their connection or are answered, and the server goes on', async () => {
  await using world = await World.serve('unix', { limits: { requestMs: 200, keepaliveMs: 200, keepaliveTimeoutMs: 200 } });
  const client = await world.client();
  let seed = 20_261_201;
  const chance = (below: number): number => {
    seed = (Math.imul(seed, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((seed / 2 ** 32) * below);
  };
  const good = (): Buffer[] => {
    const stream = 1 + 2 * chance(4);
    const all = [
      () => headers(stream),
      () => body(stream),
      () => headers(stream, 0, callHeaders(path).subarray(0, chance(40))),
      () => frame(types.continuation, chance(2) * flags.endHeaders, stream, callHeaders(path).subarray(chance(40))),
      () => frame(types.data, chance(16), stream, Buffer.alloc(chance(300), chance(256))),
      () => frame(types.reset, 0, stream, uint32(8)),
      () => frame(types.windowUpdate, 0, chance(2) * stream, uint32(1 + chance(2 ** 20))),
      () => frame(types.settings, 0, 0, setting(1 + chance(7), chance(2 ** 20))),
      () => frame(types.ping, 0, 0, Buffer.alloc(8, chance(256))),
      () => frame(chance(12), chance(256), chance(10), Buffer.alloc(chance(64), chance(256))),
    ];
    return Array.from({ length: 1 + chance(12) }, () => (all[chance(all.length)] as () => Buffer)());
  };
  const closes: Promise<unknown>[] = [];
  for (let round = 0; round < 600; round++) {
    const bytes = Buffer.concat([greeting, ...good()]);
    // A few bytes of most are wrong, and some end in the middle.
    for (let wrong = chance(4); wrong > 0; wrong--) bytes[greeting.length + chance(bytes.length - greeting.length)] = chance(256);
    const socket = world.socket();
    await once(socket, 'connect');
    socket.resume();
    closes.push(new Promise((resolve) => socket.once('close', resolve)));
    socket.write(bytes.subarray(0, chance(8) === 0 ? chance(bytes.length) : bytes.length));
    if (chance(2) === 0) socket.end();
    if (round % 50 === 49) await expectServed(client);
  }
  // Whatever they said, they give no sign of life.
  await Promise.all(closes);
  await expectServed(client);
});
