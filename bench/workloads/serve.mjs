// @ts-check
// A server of ours over the store in memory, at the socket that is named, until its input ends.
import { nodeEnvironment } from 'steadystate';
import { memoryState } from 'steadystate/memory';
import { serveState } from 'steadystate/server';

const environment = nodeEnvironment();
// As long as that of the peer: every event of a workload can be told again.
const state = memoryState({ environment, historySize: 200_000 });
const server = await serveState({
  state,
  environment,
  listen: [`unix:${process.argv[2]}`],
  directory: '/',
  control: { version: '0', pid: process.pid, store: 'memory:' },
});
console.log('ready');
for await (const _ of process.stdin);
await server.stop(0);
await state[Symbol.asyncDispose]();
