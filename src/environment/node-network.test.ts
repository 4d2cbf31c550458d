import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { connect } from 'node:net';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { connectedToItself, nodeNetwork } from './node-network.ts';
import { OpenThings } from './open-things.ts';

const open = new OpenThings();
const network = nodeNetwork(open);
let server: Server;
let url: string;
let port: number;

beforeAll(async () => {
  server = createServer((request, response) => {
    if (request.url === '/silent') return;
    if (request.url === '/moved') response.writeHead(302, { location: '/' }).end();
    else if (request.url === '/endless') response.write('x'.repeat(200_000));
    else if (request.url === '/stream') response.writeHead(200).write('one');
    else if (request.url === '/broken') response.writeHead(200, { 'content-length': '10' }).write('abc', () => response.destroy());
    else response.end(`${request.method} ${request.headers['x-name'] ?? ''}`);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  port = (server.address() as AddressInfo).port;
  url = `http://127.0.0.1:${port}`;
});
afterAll(() => {
  server.closeAllConnections();
  server.close();
});
afterEach(() => {
  expect(open.counts()).toEqual({});
});

describe('an HTTP probe', () => {
  test('answers status and body', async () => {
    expect(await network.http({ url, limitMs: 5000 })).toEqual({ status: 200, body: 'GET ' });
    expect(await network.http({ url, method: 'POST', headers: { 'x-name': 'me' }, limitMs: 5000 })).toEqual({
      status: 200,
      body: 'POST me',
    });
  });

  test('follows no redirect', async () => {
    expect(await network.http({ url: `${url}/moved`, limitMs: 5000 })).toMatchObject({ status: 302 });
  });

  test('cuts a body that never ends', async () => {
    expect((await network.http({ url: `${url}/endless`, limitMs: 5000 })).body).toHaveLength(64 * 1024);
  });

  test('does not wait for a body that nobody wants', async () => {
    for (const path of ['/stream', '/broken'])
      expect(await network.http({ url: `${url}${path}`, limitMs: 5000, statusOnly: true })).toEqual({ status: 200, body: '' });
  });

  test('rejects when there is no whole answer', async () => {
    await expect(network.http({ url: `${url}/silent`, limitMs: 50 })).rejects.toMatchObject({ code: 'ETIMEDOUT' });
    await expect(network.http({ url: `${url}/broken`, limitMs: 5000 })).rejects.toThrow();
    await expect(network.http({ url: `http://127.0.0.1:${await network.freePort()}`, limitMs: 5000 })).rejects.toMatchObject({
      code: 'ECONNREFUSED',
    });
    await expect(network.http({ url: 'ftp://nowhere', limitMs: 5000 })).rejects.toThrow();
  });

  test('ends with its signal', async () => {
    const reason = new Error('stop');
    const abort = new AbortController();
    const probe = network.http({ url: `${url}/silent`, limitMs: 60_000, signal: abort.signal });
    expect(open.counts()).toEqual({ socket: 1 });
    abort.abort(reason);
    await expect(probe).rejects.toBe(reason);
    await expect(network.http({ url, limitMs: 5000, signal: abort.signal })).rejects.toBe(reason);
  });
});

describe('ports', () => {
  test('are found taken and free', async () => {
    expect(await network.portFree(port)).toBe(false);
    const free = await network.freePort();
    expect(free).toBeGreaterThan(0);
    expect(await network.portFree(free)).toBe(true);
  });

  test('are taken, too, by who listens on all addresses', async () => {
    const everywhere = createServer();
    await new Promise<void>((resolve) => everywhere.listen(0, '0.0.0.0', resolve));
    expect(await network.portFree((everywhere.address() as AddressInfo).port)).toBe(false);
    everywhere.close();
  });

  test('are taken, too, by who listens on the other family', async (context) => {
    const other = createServer();
    const error = await new Promise<Error | undefined>((resolve) => {
      other.on('error', resolve);
      other.listen({ port: 0, host: '::1' }, () => resolve(undefined));
    });
    if (error !== undefined) return context.skip(`this machine has no loopback address of IPv6: ${error.message}`);
    const { port: taken } = other.address() as AddressInfo;
    expect(await network.portFree(taken)).toBe(false);
    expect(await network.portFree(taken, '::1')).toBe(false);
    await new Promise((resolve) => other.close(resolve));
    expect(await network.portFree(taken)).toBe(true);
  });

  test('a connection to itself is told from one to somebody', async () => {
    const nobody = await network.freePort('127.0.0.1');
    const itself = connect({ host: '127.0.0.1', port: nobody, localPort: nobody });
    await new Promise((resolve, reject) => itself.once('connect', resolve).once('error', reject));
    expect(connectedToItself(itself)).toBe(true);
    itself.destroy();
    const somebody = connect({ host: '127.0.0.1', port });
    await new Promise((resolve, reject) => somebody.once('connect', resolve).once('error', reject));
    expect(connectedToItself(somebody)).toBe(false);
    somebody.destroy();
  });

  test('are connected to', async () => {
    await network.connect({ host: '127.0.0.1', port, limitMs: 5000 });
    const refused = network.connect({ host: '127.0.0.1', port: await network.freePort(), limitMs: 5000 });
    await expect(refused).rejects.toMatchObject({ code: 'ECONNREFUSED' });
  });
});
