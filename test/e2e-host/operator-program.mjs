// A host operator over a SQLite file, from the built files: what the crash test kills. Tells `up` once it runs, and
// `ready` once its stack is; ends when it is told to on its input, or killed.
// usage: node operator-program.mjs FILE FOLDER [STACK.json]
import { readFileSync } from 'node:fs';
import { openSqliteState } from '../../dist/backends/sqlite/index.js';
import { baseDirectoryAnnotation, hostOperator, stackDefinition, stackStatusDefinition } from '../../dist/host/index.js';
import { createRuntime, DefinitionRegistry, destroyController, nodeEnvironment, validated, wrapCore } from '../../dist/index.js';

const [file, folder, stack] = process.argv.slice(2);
const environment = nodeEnvironment();
const store = await openSqliteState({ file, environment });
const operator = hostOperator({ environment, pollMs: 200 });
const core = validated(store, new DefinitionRegistry(operator.definitions));
const runtime = createRuntime({ state: core, environment });
runtime.register(destroyController([stackDefinition.kind()]));
const state = wrapCore(core, { environment });
await operator.prepare(state);
operator.register(runtime);
const stop = new AbortController();
process.stdin.on('data', () => stop.abort()).on('end', () => stop.abort());
const running = runtime.run(stop.signal);
await runtime.synced();
if (stack !== undefined) {
  const spec = JSON.parse(readFileSync(stack, 'utf8'));
  await state.create(stackDefinition.create({ id: 's', spec, annotations: { [baseDirectoryAnnotation]: folder } }));
}
process.stdout.write('up\n');
const isReady = ({ spec }) => spec.conditions.some(({ type, status }) => type === 'Ready' && status === 'True');
await state.watchFor(stackStatusDefinition.pointer('s'), { condition: isReady });
process.stdout.write('ready\n');
await running;
await store[Symbol.asyncDispose]();
process.stdin.destroy();
