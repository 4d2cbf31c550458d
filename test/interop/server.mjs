// Serves fresh stores on unix sockets for a program in another language: one JSON request a line on standard input,
// one JSON answer a line on standard output. { "open": "memory" | "sqlite" } → { "address" }, { "close": address } → {}.
// The end of its input ends it; it fails when something was left open.
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { memoryState } from '../../dist/backends/memory/index.js';
import { openSqliteState } from '../../dist/backends/sqlite/index.js';
import { nodeEnvironment } from '../../dist/environment/index.js';
import { serveState } from '../../dist/server/index.js';

const environment = nodeEnvironment();
const open = new Map();

async function openStore(kind) {
  const directory = await mkdtemp(join(tmpdir(), 'interop-'));
  const state =
    kind === 'sqlite' ? await openSqliteState({ file: join(directory, 'state.db'), environment }) : memoryState({ environment });
  const control = { version: '0', pid: process.pid, store: `${kind}:` };
  const server = await serveState({ state, environment, listen: ['unix:s'], directory, control });
  const address = server.addresses[0];
  open.set(address, async () => {
    await server.stop(500);
    await state[Symbol.asyncDispose]();
    await rm(directory, { recursive: true, force: true });
  });
  return { address };
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
    answer = request.open === undefined ? await close(request.close) : await openStore(request.open);
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
