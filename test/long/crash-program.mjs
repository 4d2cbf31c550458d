// The host operator over a SQLite file, from the built files: what the crash rounds kill.
// usage: node crash-program.mjs FILE FOLDER apply SPEC.json | delete
// Prints `begun` just before it writes, and `done` once the stack is ready, or gone.
import { readFileSync } from 'node:fs';
import { openSqliteState } from '../../dist/backends/sqlite/index.js';
import { baseDirectoryAnnotation, hostOperator, stackDefinition, stackStatusDefinition } from '../../dist/host/index.js';
import {
  createRuntime,
  DefinitionRegistry,
  destroyController,
  isNotFoundError,
  nodeEnvironment,
  validated,
  wrapCore,
} from '../../dist/index.js';

const [file, folder, verb, spec] = process.argv.slice(2);
const environment = nodeEnvironment();
const store = await openSqliteState({ file, environment });
const operator = hostOperator({ environment, pollMs: 200, onShutdown: 'leave' });
const core = validated(store, new DefinitionRegistry(operator.definitions));
const state = wrapCore(core, { environment });
const runtime = createRuntime({ state: core, environment });
runtime.register(destroyController([stackDefinition.kind()]));
await operator.prepare(state);
operator.register(runtime);
const stop = new AbortController();
const running = runtime.run(stop.signal);
const pointer = stackDefinition.pointer('s');
process.stdout.write('begun\n');
if (verb === 'apply') {
  const wanted = stackDefinition.create({
    id: 's',
    spec: JSON.parse(readFileSync(spec, 'utf8')),
    annotations: { [baseDirectoryAnnotation]: folder },
  });
  const { metadata } = await state.modifyWithResult(wanted, (draft) => {
    draft.spec = wanted.spec;
  });
  const isReady = ({ spec: status }) =>
    Number(status.observedVersion) >= Number(metadata.version) &&
    status.conditions.some(({ type, status: value }) => type === 'Ready' && value === 'True');
  await state.watchFor(stackStatusDefinition.pointer('s'), { condition: isReady });
} else {
  await state.teardown(pointer).catch((error) => {
    if (!isNotFoundError(error)) throw error;
  });
  await state.watchFor(pointer, { eventTypes: ['destroyed'] });
}
process.stdout.write('done\n');
stop.abort();
await running;
await store[Symbol.asyncDispose]();
