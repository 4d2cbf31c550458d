// Serves fresh stores on unix sockets for a program in another language: one JSON request a line on standard input,
// one JSON answer a line on standard output. { "open": "memory" | "sqlite" } → { "address" }, { "close": address } → {}.
// { "replace": address } → {}: another, empty store stands behind the address.
// { "line": address, "seed" } → { "address" } of an unsteady line to it, until it is closed. { "soak": address, "line",
// "kinds", "ids", "operations", "seed" } → {} begins to write and to watch with our client, { "views": true } →
// { "views", "cuts" } waits for what it saw.
// The end of its input ends it; it fails when something was left open.
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { memoryState } from '../../dist/backends/memory/index.js';
import { openSqliteState } from '../../dist/backends/sqlite/index.js';
import { nodeEnvironment } from '../../dist/environment/index.js';
import { serveState } from '../../dist/server/index.js';
import { CuttingProxy } from '../server/cutting-proxy.mjs';
import { follow, write } from './soak.mjs';

const environment = nodeEnvironment();
const open = new Map();
const replacements = new Map();
const lines = new Set();

async function openStore(kind, directory) {
  directory ??= await mkdtemp(join(tmpdir(), 'interop-'));
  const state =
    kind === 'sqlite' ? await openSqliteState({ file: join(directory, 'state.db'), environment }) : memoryState({ environment });
  const control = { version: '0', pid: process.pid, store: `${kind}:` };
  const server = await serveState({ state, environment, listen: ['unix:s'], directory, control });
  const address = server.addresses[0];
  const end = async () => {
    await server.stop(500);
    await state[Symbol.asyncDispose]();
  };
  open.set(address, async () => {
    await end();
    await rm(directory, { recursive: true, force: true });
  });
  replacements.set(address, async () => {
    await end();
    await openStore(kind, directory);
  });
  return { address };
}

async function openLine(target, seed) {
  const directory = await mkdtemp(join(tmpdir(), 'interop-'));
  const faults = { cutAfter: [4_000, 20_000], halfOpen: 0.3, halfOpenMs: 50, delayMs: 1 };
  const proxy = await CuttingProxy.between(target, `unix:${join(directory, 's')}`, seed, faults);
  lines.add(proxy);
  open.set(proxy.address, async () => {
    lines.delete(proxy);
    await proxy.close();
    await rm(directory, { recursive: true, force: true });
  });
  return { address: proxy.address };
}

let soak = Promise.resolve();

function beginSoak({ soak: address, line, kinds, ids, operations, seed }) {
  const writes = write(address, kinds, ids, operations, seed);
  const follows = [address, line].flatMap((from) => kinds.map((kind) => follow(from, kind)));
  soak = Promise.all([writes, ...follows]);
  // It is awaited later.
  soak.catch(() => {});
  return {};
}

async function endSoak() {
  const [, ...views] = await soak;
  let cuts = 0;
  for (const line of lines) cuts += line.cuts;
  return { views, cuts };
}

async function answerTo(request) {
  if (request.open !== undefined) return openStore(request.open);
  if (request.replace !== undefined) {
    await replacements.get(request.replace)();
    return {};
  }
  if (request.line !== undefined && request.soak === undefined) return openLine(request.line, request.seed);
  if (request.soak !== undefined) return beginSoak(request);
  if (request.views !== undefined) return endSoak();
  return close(request.close);
}

async function close(address) {
  const end = open.get(address);
  open.delete(address);
  await end();
  return {};
}

for await (const line of createInterface({ input: process.stdin })) {
  const request = JSON.parse(line);
  let answer;
  try {
    answer = await answerTo(request);
  } catch (error) {
    answer = { error: String(error) };
  }
  process.stdout.write(`${JSON.stringify(answer)}\n`);
}
for (const address of [...open.keys()]) await close(address);
const left = environment.open.counts();
if (Object.keys(left).length > 0) {
  console.error('left open:', left);
  process.exitCode = 1;
}
