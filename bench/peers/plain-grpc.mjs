// @ts-check
// What grpc-js alone can do: Get and Create on a Map, with nothing checked, kept in order or told to anybody.
import { Server, ServerCredentials } from '@grpc/grpc-js';
import { stateService } from '../../dist/wire/index.js';

const { get, create } = stateService;
/** @type {Map<string, any>} */
const all = new Map();
let version = 0;
/** @param {{ namespace: string, type: string, id: string }} pointer */
const key = ({ namespace, type, id }) => `${namespace}/${type}/${id}`;
/** An answer has the form of a CreateRequest without options. @param {any} resource */
const encoded = (resource) => create.requestSerialize({ resource, options: { owner: '' } });

const server = new Server();
server.addService(/** @type {any} */ ({ get: { ...get, responseSerialize: encoded }, create: { ...create, responseSerialize: encoded } }), {
  create(/** @type {any} */ { request: { resource } }, /** @type {any} */ answer) {
    const now = { seconds: Math.floor(Date.now() / 1000), nanos: 0 };
    const stored = { ...resource, metadata: { ...resource.metadata, version: String(++version), created: now, updated: now } };
    all.set(key(stored.metadata), stored);
    answer(null, stored);
  },
  get(/** @type {any} */ { request }, /** @type {any} */ answer) {
    answer(null, all.get(key(request)));
  },
});
server.bindAsync(`unix:${process.argv[2]}`, ServerCredentials.createInsecure(), () => console.log('ready'));
for await (const _ of process.stdin);
server.forceShutdown();
