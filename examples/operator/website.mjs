// An operator of one's own: the kind `Websites.example.dev`, whose children – a folder, files, a server – come up in
// phases, one of them written here. The host operator makes the children real.
//
//   npm run build && node examples/operator/website.mjs [memory: | sqlite:./website.db] [folder]
import { join, resolve } from 'node:path';
import * as steady from 'steadystate';
import { directoryDefinition, fileDefinition, hostOperator, processDefinition } from 'steadystate/host';
import { openStore } from 'steadystate/stores';
import * as workload from 'steadystate/workload';
import { z } from 'zod';

const website = steady.defineResource({
  type: 'Websites.example.dev',
  spec: z.strictObject({ title: z.string(), text: z.string(), directory: z.string(), port: z.int().min(1) }),
  status: { type: 'WebsiteStatuses.example.dev' },
  printColumns: [{ name: 'PORT', jsonPath: '{.spec.port}' }],
});

const server = `
  import { readFile } from 'node:fs/promises';
  import { createServer } from 'node:http';
  const serve = async (request, response) => response.setHeader('content-type', 'text/html').end(await readFile('index.html'));
  createServer(serve).listen(process.env.PORT, '127.0.0.1');`;

/** The children of one website, each behind those that it depends on. */
function getResources({ name, spec: { title, text, directory, port } }) {
  const child = (definition, id, spec, dependsOn) =>
    workload.desiredChild(definition.create({ id: `${name}/${id}`, spec }), { name: id, dependsOn });
  const file = (path, content) => child(fileDefinition, path, { path: join(directory, path), within: directory, content }, ['folder']);
  const process = {
    command: ['node', 'server.mjs'],
    directory,
    environment: { PORT: port },
    outputFile: join(directory, 'server.log'),
    ready: { tcp: port },
  };
  return [
    child(directoryDefinition, 'folder', { path: directory, within: directory }, []),
    file('index.html', `<title>${title}</title><h1>${title}</h1><p>${text}</p>`),
    file('server.mjs', server),
    child(processDefinition, 'server', process, ['index.html', 'server.mjs']),
  ];
}

/** A phase of one's own: the page must say the title. */
async function smokeTest(_reconciler, { workload: { spec }, signal }) {
  const answer = await fetch(`http://127.0.0.1:${spec.port}/`, { signal });
  const proceed = answer.ok && (await answer.text()).includes(spec.title);
  return { proceed, reason: 'NotServed', message: `the page answers ${answer.status}`, requeueAfterMs: 500 };
}

const phases = workload.createRegistry();
for (const event of ['create', 'update']) {
  phases.register('Create-Resources', workload.createResourcesPhase, event, workload.withResourceOptions('withWait'));
  phases.register('Check-Ready', workload.checkReadyPhase, event);
  phases.register('Smoke-Test', smokeTest, event);
  phases.register('Complete', workload.completePhase, event);
}
phases.register('Delete-Resources', workload.deleteResourcesPhase, 'delete');
const children = [directoryDefinition, fileDefinition, processDefinition];
const websites = workload.defineWorkload({ definition: website, children, phases, getResources });

const [url = 'memory:', folder = 'website-data'] = process.argv.slice(2);
const timestamp = () => new Date().toISOString();
const environment = steady.nodeEnvironment({ log: steady.lineLogger({ write: console.log, timestamp }) });
const store = await openStore(url, { environment, directory: process.cwd() });
const host = hostOperator({ environment });
const core = steady.validated(store.state, new steady.DefinitionRegistry([website, ...host.definitions]));
const runtime = steady.createRuntime({ state: core, environment });
host.register(runtime);
runtime.register(workload.embeddedWorkloadController(websites, { environment }));
runtime.register(steady.destroyController([website.kind()]));
const stop = new AbortController();
for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => stop.abort());
const running = runtime.run(stop.signal);

const state = steady.wrapCore(core, { environment });
const [directory, port] = [resolve(folder), await environment.network.freePort()];
const hello = website.create({ id: 'hello', spec: { title: 'Hello', text: 'This site is kept as declared.', directory, port } });
// An earlier run may have declared it: then it stays where it was.
const { metadata, spec } = await state.modifyWithResult(hello, () => {});
const isReady = ({ spec }) => spec.conditions.some(({ type, status }) => type === 'Ready' && status === 'True');
await state.watchFor({ ...metadata, type: website.statusType }, { condition: isReady });
console.log(`ready: http://127.0.0.1:${spec.port}/ – edit ${spec.directory}/index.html, or end the server; Ctrl-C stops`);
await running;
await store[Symbol.asyncDispose]();
