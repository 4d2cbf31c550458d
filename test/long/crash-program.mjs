// The host operator over a SQLite file, from the built files: what the crash rounds kill.
// usage: node crash-program.mjs FILE FOLDER
// Reads one command a line, JSON: { verb: 'apply', spec } | { verb: 'delete' } | { verb: 'wait' } | { verb: 'look' } | { verb: 'end' }.
// A command may carry `kill: { step, when, delayMs }`: at that step of its work (a write of the store, an effect on files or
// processes) the program kills itself with SIGKILL: before it, while it is on its way, or when it is done.
// Prints one line each, JSON, at once: `opened`, `revision` (acknowledged), `acknowledged`, `killed`, `done`, `look`.
import { writeSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { openSqliteState } from '../../dist/backends/sqlite/index.js';
import { baseDirectoryAnnotation, hostDefinitions, hostOperator, stackDefinition, stackStatusDefinition } from '../../dist/host/index.js';
import {
  createRuntime,
  DefinitionRegistry,
  destroyController,
  isNotFoundError,
  nodeEnvironment,
  validated,
  wrapCore,
} from '../../dist/index.js';

const [file, folder] = process.argv.slice(2);
const tell = (message) => writeSync(1, `${JSON.stringify(message)}\n`);

let steps = 0;
let plan;

function die(what) {
  tell({ killed: { what, step: steps, when: plan.when } });
  process.kill(process.pid, 'SIGKILL');
}

/** One effect, which may be the one at which the program is killed. */
async function step(what, work) {
  const mine = ++steps === plan?.step;
  if (mine && plan.when === 'before') die(what);
  const pending = work();
  if (mine && plan.when === 'during') setTimeout(() => die(what), plan.delayMs);
  const answer = await pending;
  if (what.startsWith('store') && answer?.metadata !== undefined) tell({ revision: Number(answer.metadata.version) });
  if (mine && plan.when === 'after') die(what);
  return answer;
}

/** The same object, with some of its methods as steps. */
function counting(object, name, methods, change = (_method, answer) => answer) {
  return new Proxy(object, {
    get(target, key) {
      const member = Reflect.get(target, key, target);
      if (typeof member !== 'function') return member;
      if (!methods.includes(key)) return member.bind(target);
      return async (...given) => change(key, await step(`${name}.${key}`, () => member.apply(target, given)));
    },
  });
}

const real = nodeEnvironment();
const environment = {
  ...real,
  files: counting(real.files, 'files', [
    'makeDirectory',
    'writeTemporary',
    'sync',
    'rename',
    'changeMode',
    'remove',
    'removeDirectory',
    'truncate',
    'copy',
  ]),
  processes: counting(real.processes, 'processes', ['spawnGated', 'signalGroup'], (method, answer) =>
    method === 'spawnGated' ? counting(answer, 'gate', ['release', 'abandon']) : answer,
  ),
};
const opened = await openSqliteState({ file, environment: real });
const store = counting(opened, 'store', ['create', 'update', 'destroy']);
const operator = hostOperator({ environment, pollMs: 200, onShutdown: 'leave' });
const core = validated(store, new DefinitionRegistry(operator.definitions));
const state = wrapCore(core, { environment });
const pointer = stackDefinition.pointer('s');
const stack = async () => (await state.list(stackDefinition.kind())).items[0];
const found = await stack();
tell({ opened: { revision: opened.revision, stack: found && { mark: found.metadata.labels.mark, phase: found.metadata.phase } } });
const runtime = createRuntime({ state: core, environment });
runtime.register(destroyController([stackDefinition.kind()]));
await operator.prepare(state);
operator.register(runtime);
const stop = new AbortController();
const running = runtime.run(stop.signal);

async function untilDone() {
  const current = await stack();
  if (current === undefined || current.metadata.phase === 'tearingDown') {
    await state.watchFor(pointer, { eventTypes: ['destroyed'] });
    return;
  }
  const isReady = ({ spec: status }) =>
    Number(status.observedVersion) >= Number(current.metadata.version) &&
    status.conditions.some(({ type, status: value }) => type === 'Ready' && value === 'True');
  await state.watchFor(stackStatusDefinition.pointer('s'), { condition: isReady });
}

/** What there is, without what differs from run to run. */
async function look() {
  const fleeting = new Set(['pid', 'startTime', 'bootId', 'startedAt', 'outputStart', 'uid', 'workloadUid', 'lastTransitionTime', 'at']);
  const versions = new Set(['observedVersion', 'generation', 'observedGeneration', 'restartDigest', 'observed', 'digest', 'specDigest']);
  const things = {};
  for (const { type } of hostDefinitions) {
    if (!type.endsWith('.host.steadystate.dev')) continue;
    for (const { metadata, spec } of (await state.list({ namespace: 'default', type })).items) {
      const plain = JSON.parse(JSON.stringify(spec, (key, value) => (fleeting.has(key) || versions.has(key) ? undefined : value)));
      things[`${type.split('.')[0]} ${metadata.id}`] = { phase: metadata.phase, finalizers: metadata.finalizers, spec: plain };
    }
  }
  return things;
}

for await (const line of createInterface({ input: process.stdin })) {
  const { verb, spec, mark, kill } = JSON.parse(line);
  if (verb === 'end') break;
  if (verb === 'look') {
    tell({ look: await look() });
    continue;
  }
  steps = 0;
  plan = kill;
  if (verb === 'apply') {
    const wanted = stackDefinition.create({ id: 's', spec, labels: { mark }, annotations: { [baseDirectoryAnnotation]: folder } });
    await state.modify(wanted, (draft) => {
      draft.spec = wanted.spec;
      draft.labels.set('mark', mark);
    });
    tell({ acknowledged: mark });
  } else if (verb === 'delete') {
    await state.teardown(pointer).catch((error) => {
      if (!isNotFoundError(error)) throw error;
    });
    tell({ acknowledged: mark });
  }
  await untilDone();
  tell({ done: steps });
  plan = undefined;
}
stop.abort();
await running;
await opened[Symbol.asyncDispose]();
