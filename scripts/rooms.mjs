// The rooms of src/ and the arrows between them: the one table that biome.json and the guard tests are held to.
// `node scripts/rooms.mjs` writes the generated rules of biome.json anew.
import { readFileSync, writeFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

/**
 * A room is a folder of src/ with one face, its index.ts; `.` is src/index.ts itself, the package's main face.
 *  - `knows`: the rooms it may import; what those know it may import too.
 *  - `partOf`: the room whose files it may import past the face. Of that room only index.ts may import it in turn.
 *  - `packages`: the packages outside Node that it may import.
 *  - `modules`: modules of Node that it may import beside the pure ones.
 *  - `ambient`: files (or folders, ending in /) that may touch clocks, files, processes and sockets themselves.
 *  - `globals`: ambient globals that all of it may touch.
 * @typedef {{
 *   knows: string[], partOf?: string, packages?: string[], modules?: string[], ambient?: string[], globals?: string[],
 * }} Room
 * @type {Record<string, Room>}
 */
export const rooms = {
  environment: { knows: [], ambient: ['src/environment/'] },
  // The RE2 engine is loaded at the first query that needs one.
  resource: { knows: ['environment'], packages: ['re2js'], modules: ['node:module'] },
  state: { knows: ['resource'] },
  // Ports of ours on libraries of others, each behind a subpath of its own.
  'adapters/prometheus': { knows: ['environment'], packages: ['prom-client'] },
  'adapters/protobuf': { knows: ['resource'], packages: ['@bufbuild/protobuf'] },
  'adapters/opentelemetry': { knows: ['environment'], packages: ['@opentelemetry/api'] },
  queue: { knows: ['environment'] },
  // The YAML library is loaded at the first text that needs it.
  wire: { knows: ['state'], packages: ['@bufbuild/protobuf', '@grpc/grpc-js', 'yaml'], modules: ['node:module'] },
  'backends/broker': { knows: ['state'] },
  'backends/memory': { knows: ['backends/broker'] },
  'backends/sqlite': {
    knows: ['backends/broker', 'wire'],
    packages: ['@photostructure/sqlite'],
    // The driver, what runs in its thread, and the thread's other end.
    ambient: [
      ...['disk-room', 'driver', 'file-identity', 'log-gauge', 'side-file', 'store-file', 'store-worker', 'work-gate', 'writer-worker'].map(
        (name) => `src/backends/sqlite/${name}.ts`,
      ),
      'src/backends/sqlite/admin/',
    ],
  },
  // gRPC tells deadlines by the wall clock.
  'backends/remote': { knows: ['wire'], packages: ['@grpc/grpc-js'], ambient: ['src/backends/remote/calls.ts'] },
  runtime: { knows: ['state', 'queue'] },
  workload: { knows: ['environment', 'resource', 'queue'] },
  'workload/embedded': { partOf: 'workload', knows: ['runtime'] },
  stores: { knows: ['backends/memory', 'backends/sqlite', 'backends/remote'] },
  // It speaks HTTP/2 itself, over Node's sockets.
  server: { knows: ['runtime', 'wire'], modules: ['node:net'] },
  '.': { knows: ['runtime'] },
  host: { knows: ['.', 'workload'], packages: ['re2js', 'zod'] },
  cli: {
    knows: ['.', 'workload', 'stores', 'server', 'host', 'wire'],
    packages: ['commander', 'yaml'],
    modules: ['node:module'],
    // An editor gets the person's terminal as it is; records name the user and the machine.
    ambient: ['src/cli/caller.ts', 'src/cli/file-sink.ts', 'src/cli/open-editor.ts', 'src/cli/reader-gone.ts'],
    globals: ['process'],
  },
  testing: {
    knows: ['.', 'workload', 'stores', 'server', 'host', 'wire'],
    packages: ['fast-check'],
    ambient: ['src/testing/manual-environment.ts'],
  },
};

/** Globals that nobody touches but the files named in `ambient`; everybody else asks the Environment. */
export const ambientGlobals = [
  'performance',
  'setTimeout',
  'setInterval',
  'setImmediate',
  'clearTimeout',
  'clearInterval',
  'clearImmediate',
  'process',
  'fetch',
  'WebSocket',
  'EventSource',
  'BroadcastChannel',
  'MessageChannel',
  'WeakRef',
  'FinalizationRegistry',
  'crypto',
  'Atomics',
  'globalThis',
  'global',
  'require',
  'eval',
  'Function',
];

/** Modules of Node that do nothing to the world: every room may import them. */
export const pureModules = [
  'node:assert',
  'node:buffer',
  'node:events',
  'node:path',
  'node:stream',
  'node:string_decoder',
  'node:url',
  'node:util',
  'node:zlib',
];

/** Of node:crypto, what has no chance in it: every room may import these names. */
export const pureCrypto = ['createHash', 'createHmac', 'hash', 'timingSafeEqual', 'Hash', 'X509Certificate'];

/** Every room that `name` may import. */
export function reach(name) {
  const found = new Set();
  const visit = (from) => {
    const { knows, partOf } = rooms[from];
    for (const next of partOf === undefined ? knows : [...knows, partOf]) {
      if (found.has(next)) continue;
      found.add(next);
      visit(next);
    }
  };
  visit(name);
  found.delete(name);
  return [...found];
}

/** The room of a file, by its path from src/ (`queue/heap.ts`); `undefined`: it stands in none. */
export function roomOf(path) {
  if (!path.includes('/')) return path === 'index.ts' ? '.' : undefined;
  let found;
  for (const name of Object.keys(rooms)) {
    if (path.startsWith(`${name}/`) && (found === undefined || name.length > found.length)) found = name;
  }
  return found;
}

/** Whether the file of this path from the package's folder may touch the world itself. */
export function mayBeAmbient(path) {
  return Object.values(rooms).some((room) => room.ambient?.some((free) => (free.endsWith('/') ? path.startsWith(free) : path === free)));
}

/** The first override of biome.json is written by hand. */
export const writtenByHand = 1;

/** The others are made here: they hold the arrows and the globals while a person types. The guard tests see more. */
export function overrides() {
  return Object.keys(rooms)
    .filter((name) => name !== '.')
    .flatMap((name) => [importRule(name), globalRule(name)]);
}

function importRule(name) {
  const allowed = reach(name);
  const inside = roomsInside(name);
  const patterns = Object.keys(rooms)
    .filter((other) => other !== '.' && other !== name && other !== rooms[name].partOf && !inside.includes(other))
    .map((other) =>
      allowed.includes(other)
        ? { group: [`**/${other}/**`, `!**/${other}/index.ts`], message: `Import the face of ${other}: its index.ts.` }
        : { group: [`**/${other}/**`], message: `${name} may not know ${other} (scripts/rooms.mjs).` },
    );
  patterns.push({ group: ['steadystate', 'steadystate/**'], message: 'Inside the package, import the room by its path.' });
  return rule(name, [], 'noRestrictedImports', { patterns });
}

function globalRule(name) {
  const { ambient = [], globals = [] } = rooms[name];
  const denied = ambientGlobals.filter((global) => !globals.includes(global));
  const deniedGlobals = Object.fromEntries(denied.map((global) => [global, 'Ask the Environment (docs/architecture.md).']));
  return rule(name, ambient, 'noRestrictedGlobals', { deniedGlobals });
}

function rule(name, free, rule, options) {
  const not = [...roomsInside(name).map((other) => `src/${other}/`), ...free].map((path) => `!${path}${path.endsWith('/') ? '**' : ''}`);
  return {
    includes: [`src/${name}/**`, ...not, '!src/**/*.test.ts'],
    linter: { rules: { style: { [rule]: { level: 'error', options } } } },
  };
}

function roomsInside(name) {
  return Object.keys(rooms).filter((other) => other.startsWith(`${name}/`));
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const path = join(resolve(dirname(fileURLToPath(import.meta.url)), '..'), 'biome.json');
  const config = JSON.parse(readFileSync(path, 'utf8'));
  config.overrides = [...config.overrides.slice(0, writtenByHand), ...overrides()];
  writeFileSync(path, `${JSON.stringify(config, undefined, 2)}\n`);
}
