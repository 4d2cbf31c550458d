import { mkdtemp, rm } from 'node:fs/promises';
import type { ServerHttp2Stream } from 'node:http2';
import { constants, createServer } from 'node:http2';
import type { Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { nodeEnvironment } from '../../environment/index.ts';
import { Bytes, makeResource } from '../../resource/index.ts';
import { controlService, encodeEvent, encodeWatchResponse, grpcCodes, ResourceCodec, stateService } from '../../wire/index.ts';
import { openRemoteState } from './index.ts';

const framed = (message: Buffer): Buffer => {
  const prefix = Buffer.alloc(5);
  prefix.writeUInt32BE(message.length, 1);
  return Buffer.concat([prefix, message]);
};
const withStatus = (code: number) => (stream: ServerHttp2Stream) => {
  stream.removeAllListeners('wantTrailers');
  stream.on('wantTrailers', () => stream.sendTrailers({ 'grpc-status': String(code) }));
  stream.end();
};
const thing = { metadata: { namespace: 'default', type: 'Things.example.dev', id: 'a' }, spec: {} };

/** Answers calls by what is done to their streams, once the request has come; the control service it does not know. */
async function servedBy(end: (stream: ServerHttp2Stream, path: string) => void) {
  const directory = await mkdtemp(join(tmpdir(), 'steadystate-'));
  const environment = nodeEnvironment();
  const sockets = new Set<Socket>();
  const asked: string[] = [];
  const server = createServer();
  server.on('connection', (socket: Socket) => void sockets.add(socket));
  server.on('sessionError', () => {});
  server.on('stream', (stream, headers) => {
    const path = String(headers[':path']);
    stream.on('error', () => {});
    stream.resume();
    stream.once('end', () => {
      if (path === controlService.info.path)
        return stream.respond(
          { ':status': 200, 'content-type': 'application/grpc', 'grpc-status': grpcCodes.unimplemented },
          { endStream: true },
        );
      asked.push(path);
      end(stream, path);
    });
  });
  const address = join(directory, 's');
  await new Promise<void>((resolve) => server.listen(address, resolve));
  const state = await openRemoteState({ address: `unix:${address}`, environment });
  return {
    state,
    asked,
    async [Symbol.asyncDispose]() {
      await state[Symbol.asyncDispose]();
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
      await rm(directory, { recursive: true });
      expect(environment.open.counts()).toEqual({});
    },
  };
}

const resets = [
  'NGHTTP2_NO_ERROR',
  'NGHTTP2_INTERNAL_ERROR',
  'NGHTTP2_CANCEL',
  'NGHTTP2_ENHANCE_YOUR_CALM',
  'NGHTTP2_PROTOCOL_ERROR',
] as const;

test.each(resets)('a write whose stream is reset by %s is Ambiguous, and is sent once', async (code) => {
  await using world = await servedBy((stream) => stream.close(constants[code]));
  await expect(world.state.create(thing)).rejects.toMatchObject({ code: 'Ambiguous' });
  expect(world.asked).toEqual([stateService.create.path]);
});

test('a write whose stream is refused was not begun: Unavailable', async () => {
  await using world = await servedBy((stream) => stream.close(constants.NGHTTP2_REFUSED_STREAM));
  await expect(world.state.create(thing)).rejects.toMatchObject({
    code: 'Unavailable',
    message: expect.stringContaining('takes no more calls'),
  });
});

test('a write whose connection is cut before or within the answer is Ambiguous', async () => {
  await using world = await servedBy((stream) => {
    // A frame of gRPC that says it has 64 bytes, and the end in the middle of them.
    stream.respond({ ':status': 200, 'content-type': 'application/grpc' });
    stream.write(Buffer.from([0, 0, 0, 0, 64, 1, 2, 3]), () => stream.session?.destroy());
  });
  await expect(world.state.create(thing)).rejects.toMatchObject({ code: 'Ambiguous' });
  expect(world.asked).toEqual([stateService.create.path]);
});

test('a write that is answered with HTTP of a proxy, or with OK and nothing else, is Ambiguous', async () => {
  for (const headers of [
    { ':status': 502, 'content-type': 'text/html' },
    { ':status': 504 },
    { ':status': 200, 'content-type': 'application/grpc', 'grpc-status': 0 },
  ]) {
    await using world = await servedBy((stream) => stream.respond(headers, { endStream: true }));
    await expect(world.state.create(thing), JSON.stringify(headers)).rejects.toMatchObject({ code: 'Ambiguous' });
  }
});

test('an answer that cannot be read leaves the outcome of a write unknown; a read fails', async () => {
  await using world = await servedBy((stream) => {
    stream.respond({ ':status': 200, 'content-type': 'application/grpc' }, { waitForTrailers: true });
    stream.on('wantTrailers', () => stream.sendTrailers({ 'grpc-status': '0' }));
    stream.end(Buffer.from([0, 0, 0, 0, 2, 0x0a, 0x7f]));
  });
  await expect(world.state.create(thing)).rejects.toMatchObject({ code: 'Ambiguous' });
  await expect(world.state.update({ ...thing, metadata: { ...thing.metadata, version: '1' } })).rejects.toMatchObject({
    code: 'Ambiguous',
  });
  await expect(world.state.get(thing.metadata)).rejects.toMatchObject({ name: 'SteadystateError' });
});

test('an answer without a resource, or with one that cannot be, leaves the outcome of a write unknown', async () => {
  await using world = await servedBy((stream) => {
    stream.respond({ ':status': 200, 'content-type': 'application/grpc' }, { waitForTrailers: true });
    stream.on('wantTrailers', () => stream.sendTrailers({ 'grpc-status': '0' }));
    stream.end(Buffer.from([0, 0, 0, 0, 0]));
  });
  await expect(world.state.create(thing)).rejects.toMatchObject({ code: 'Ambiguous' });
  await expect(world.state.get(thing.metadata)).rejects.toMatchObject({ name: 'SteadystateError' });
});

test('a watch goes on from its last bookmark after whatever end of its stream that says nothing against it', async () => {
  const codec = new ResourceCodec();
  const ends: ((stream: ServerHttp2Stream) => void)[] = [
    ...resets.map((code) => (stream: ServerHttp2Stream) => stream.close(constants[code])),
    (stream) => stream.close(constants.NGHTTP2_REFUSED_STREAM),
    (stream) => stream.session?.destroy(),
    (stream) => stream.session?.goaway(constants.NGHTTP2_ENHANCE_YOUR_CALM),
    ...[grpcCodes.deadlineExceeded, grpcCodes.resourceExhausted, grpcCodes.unknown, grpcCodes.aborted].map((code) => withStatus(code)),
  ];
  let turn = 0;
  await using world = await servedBy((stream) => {
    const end = ends[turn++];
    stream.respond({ ':status': 200, 'content-type': 'application/grpc' }, { waitForTrailers: true });
    stream.on('wantTrailers', () => stream.sendTrailers({ 'grpc-status': '0' }));
    const bookmark = Bytes.from(Buffer.from(`place ${turn}`));
    const resource = makeResource({ metadata: { ...thing.metadata, id: String(turn), version: String(turn) }, spec: {} });
    const event = encodeEvent({ type: 'created', resource, bookmark }, thing.metadata, codec);
    stream.write(framed(encodeWatchResponse([])));
    stream.write(framed(encodeWatchResponse([event])), () => end?.(stream));
  });
  const seen: string[] = [];
  for await (const event of await world.state.watchKind(thing.metadata)) {
    expect(event.type).toBe('created');
    if ('resource' in event) seen.push(event.resource.metadata.id);
    if (seen.length > ends.length) break;
  }
  expect(seen).toEqual([...ends, undefined].map((_end, index) => String(index + 1)));
}, 60_000);

test('a socket path that no socket can have is refused, not cut', async () => {
  const address = `unix:${join(tmpdir(), 'x'.repeat(120))}`;
  await expect(openRemoteState({ address, environment: nodeEnvironment() })).rejects.toMatchObject({ code: 'Invalid' });
});
