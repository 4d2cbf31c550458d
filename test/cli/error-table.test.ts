import { mkdir, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { buildProgram } from '../../src/cli/index.ts';
import { nodeEnvironment } from '../../src/environment/index.ts';
import { makeResource } from '../../src/resource/index.ts';
import { wrapCore } from '../../src/state/index.ts';
import { openStore } from '../../src/stores/index.ts';
import { Workplace } from './harness.ts';
import type { InProcessOptions } from './in-process.ts';
import { quietIo, runInProcess } from './in-process.ts';

// Every way to fail, of every command: its code, what standard error says, and that nothing else is said.

let place: Workplace;

beforeAll(async () => {
  place = await Workplace.make();
  await place.serveModule(`
const ready = ({ spec }) => spec.ready === 'broken'
  ? { status: 'Failed', reason: 'Broken', message: 'it fell' }
  : { status: 'InProgress', reason: 'NotYet', message: 'soon' };
export const definitions = [
  defineResource({ type: 'Things.example.dev', spec, ready }),
  defineResource({ type: 'Rocks.example.dev', spec }),
  defineResource({ type: 'Rocks.other.dev', spec }),
];
`);
  const environment = nodeEnvironment();
  await using store = await openStore(`unix:${place.path('.steadystate/api.sock')}`, { environment, directory: place.folder });
  const state = wrapCore(store.state, { environment });
  const thing = (id: string, more: object = {}, spec: object = {}) =>
    makeResource({ metadata: { namespace: 'default', type: 'Things.example.dev', id, ...more }, spec });
  await state.create(thing('plain'));
  await state.create(thing('broken', {}, { ready: 'broken' }));
  await state.create(thing('owned'), { owner: 'its-controller' });
  await state.create(thing('going', { finalizers: ['hold'] }));
  await state.teardown(thing('going').metadata);
});

afterAll(() => place[Symbol.asyncDispose]());

const commands = buildProgram(quietIo('/'), nodeEnvironment(), () => {}).commands.map((command) => ({
  name: command.name(),
  required: command.registeredArguments.filter(({ required }) => required).map((argument) => argument.name()),
  variadic: command.registeredArguments.some(({ variadic }) => variadic),
  arguments: command.registeredArguments.length,
  options: command.options.map(({ long }) => long),
}));
/** All that people see. */
const leaves = commands.filter(({ name }) => !name.startsWith('__'));

/** Arguments with which a command would do something. */
const samples: Readonly<Record<string, readonly string[]>> = {
  apply: ['-f', '-'],
  delete: ['thing', 'plain'],
  diff: ['-f', '-'],
  plan: ['-f', '-'],
  wait: ['thing', 'plain', '--for=ready'],
  label: ['thing', 'plain', 'a=b'],
  annotate: ['thing', 'plain', 'a=b'],
  'release-finalizer': ['thing', 'plain', 'hold'],
  get: ['thing'],
  watch: ['thing'],
  describe: ['thing', 'plain'],
  why: ['thing', 'plain'],
  edit: ['thing', 'plain'],
  logs: ['shop'],
  restart: ['shop', 'api'],
  completion: ['bash'],
  store: ['check'],
};
const sample = (name: string): readonly string[] => samples[name] ?? [];
/** Options without which a command does not look at its arguments. */
const flags = (name: string): readonly string[] => sample(name).filter((word) => word.startsWith('--'));
const input = 'metadata: { type: Things.example.dev, id: plain }\nspec: {}\n';
const variables = { EDITOR: 'true', TMPDIR: '/tmp' };

async function fails(
  args: readonly string[],
  code: number,
  message: RegExp,
  options: InProcessOptions & { readonly folder?: string } = {},
): Promise<string> {
  const result = await runInProcess(options.folder ?? place.folder, args, { input, variables, ...options });
  expect({ args, ...result }).toEqual({ args, code, stdout: '', stderr: expect.stringMatching(message), open: {} });
  return result.stderr;
}

describe.each(leaves)('wrong use of $name', ({ name, required, variadic, arguments: most, options }) => {
  const see = `see: steadystate ${name} --help\n`;
  test.each([
    ['an unknown option', [...sample(name), '--nope'], /unknown option '--nope'/],
    ['a duration that is none', [...sample(name), '--timeout', 'soon'], /--timeout: expected a duration such as 30s or 5m, found soon/],
    ['an empty namespace', [...sample(name), '-n', ''], /-n: expected 1 to 1024 bytes, found none/],
    ['a namespace with a newline', [...sample(name), '-n', 'a\nb'], /-n: must not hold control characters, found "a\\\\nb"/],
    ['a store of no known kind', [...sample(name), '--store', 'redis:x'], /--store: expected one of memory:, sqlite:PATH.*found "redis:x"/],
    ...(required.length > 0
      ? [['a missing argument', flags(name), new RegExp(`missing required argument '${required[0]}'`)] as const]
      : []),
    ...(variadic
      ? []
      : [['too many arguments', [...flags(name), ...Array.from({ length: most + 1 }, () => 'x')], /too many arguments/] as const]),
    ...(options.includes('--output')
      ? [['an unknown output', [...sample(name), '-o', 'xml'], /unknown output xml; expected|prints [a-z, ]+ or \w+, found xml/] as const]
      : []),
    ...(options.includes('--output') && name !== 'graph' && name !== 'store' && name !== 'store'
      ? [['a bad path in -o', [...sample(name), '-o', 'jsonpath={.a'], /JSONPath "\{\.a": expected } at character 4/] as const]
      : []),
    ...(options.includes('--all-namespaces')
      ? [['one namespace and all', [...sample(name), '-A', '-n', 'x'], /-n and -A cannot be combined/] as const]
      : []),
    ['an escape in what was typed', ['\u001b[31m', '--\u001b[2J', ...sample(name)], /\\x1b\[2J/],
  ] as [string, readonly string[], RegExp][])('%s', async (_name, args, message) => {
    // Wrong use is told before any store is looked for.
    const stderr = await fails([name, ...args], 2, message, { folder: '/nowhere' });
    expect(stderr.endsWith(see)).toBe(true);
    expect(stderr).not.toContain('\u001b');
  });
});

/** `store` looks for files as well, and says so in its own words. */
const needStore = leaves.filter(({ name }) => !['up', 'serve', 'plan', 'completion', 'version', 'store'].includes(name));

describe.each(needStore)('$name without its store', ({ name }) => {
  test.each([
    [
      'nothing here',
      [],
      1,
      /no store here: neither unix:\S+ answers nor does \S+ exist; start one with: steadystate up, or name one with --store/,
    ],
    ['no server', ['--store', 'unix:none.sock'], 1, /no server answers at unix:\/\S+none\.sock.*start one, or name another store/],
    ...(name === 'apply'
      ? []
      : ([['no file', ['--store', 'sqlite:none.db'], 3, /none\.db does not exist; start one with: steadystate serve --store/]] as const)),
    ['a kind that is not offered', ['--store', 'etcd://h:1/x'], 1, /not offered by this version; use/],
  ] as [string, readonly string[], number, RegExp][])('%s', async (_name, store, code, message) => {
    const empty = await Workplace.make();
    await fails([name, ...sample(name), ...store], code, message, { folder: empty.folder });
    await empty[Symbol.asyncDispose]();
  });
});

const taking = leaves.filter(({ required }) => required[0] === 'type');

describe.each(taking)('$name TYPE ID', ({ name, required }) => {
  const rest = sample(name).slice(2);
  test('an unknown type, one that several types answer to', async () => {
    expect(await fails([name, 'thign', 'plain', ...rest], 2, /^unknown type thign; known are .*thing.*; did you mean thing\?\n/)).toContain(
      `steadystate ${name} --help`,
    );
    await fails([name, 'rock', 'plain', ...rest], 2, /rock is ambiguous: Rocks\.example\.dev, Rocks\.other\.dev; write the whole type/);
  });

  test('an id that cannot be one', async () => {
    await fails([name, 'thing', 'a\u001b[31mb', ...rest], 2, /^ID: must not hold control characters, found "a\\\\x1b\[31mb"/);
    await fails([name, 'thing', 'x'.repeat(1025), ...rest], 2, /^ID: must be at most 1024 UTF-8 bytes, found 1025/);
    if (required.includes('id')) await fails([name, 'thing', '', ...rest], 2, /^ID: expected 1 to 1024 bytes, found none/);
  });

  // These two wait for what is not there yet.
  if (name === 'wait' || name === 'watch') return;
  test('an id that is not there', async () => {
    await fails(
      [name, 'thing', 'none', ...rest],
      3,
      /^Things\.example\.dev\/default\/none does not exist\nsee what there is: steadystate get Things\.example\.dev -n default\n$/,
    );
    await fails([name, 'thing', 'plain', '-n', 'elsewhere', ...rest], 3, /^Things\.example\.dev\/elsewhere\/plain does not exist\n/);
  });
});

const file = (text: string): InProcessOptions => ({ input: text });

test.each([
  ['delete: nothing named', ['delete'], 2, /name TYPE and ID, or files with -f/],
  ['delete: a type alone', ['delete', 'thing'], 2, /name the thing to delete/],
  ['delete: both ways', ['delete', 'thing', 'a', '-f', 'x.yaml'], 2, /name TYPE and ID, or files with -f/],
  ['delete: not there', ['delete', 'thing', 'none'], 3, /none does not exist\nsee what there is/],
  [
    'delete: owned',
    ['delete', 'thing', 'owned'],
    4,
    /owned by the controller its-controller, which would make it again; delete what it is made from/,
  ],
  ['delete: an unknown type', ['delete', 'thign', 'a'], 2, /unknown type thign/],
  ['apply: nothing named', ['apply'], 2, /-f FILE/],
  ['diff: nothing named', ['diff'], 2, /-f FILE/],
  ['plan: nothing named', ['plan'], 2, /-f FILE/],
  ...['apply', 'diff', 'plan', 'delete'].flatMap((name) => [
    [`${name}: a missing file`, [name, '-f', 'none.yaml'], 3, /none\.yaml does not exist \(looked for \/.*none\.yaml\)/],
    [`${name}: a URL`, [name, '-f', 'https://example.com/x.yaml'], 2, /is a URL; download it first/],
    [`${name}: a folder without files`, [name, '-f', 'empty'], 3, /the folder empty holds no \.yaml, \.yml or \.json file/],
    [`${name}: nothing in it`, [name, '-f', '-'], 2, /no resource in -/, file('')],
    [`${name}: broken YAML`, [name, '-f', '-'], 1, /<stdin>:1:\d+: /, file('metadata: [')],
    [
      `${name}: an unknown type in a file`,
      [name, '-f', '-'],
      1,
      /<stdin>:1:\d+: metadata\.type: unknown type thign/,
      file('metadata: { type: thign, id: a }\nspec: {}\n'),
    ],
  ]),
  ...['apply', 'diff'].flatMap((name) => [
    [
      `${name}: a version of before`,
      [name, '-f', '-'],
      4,
      /expected version 1, found \d+; read it again\n.*steadystate get Things/,
      file('metadata: { type: thing, id: plain, version: "1" }\nspec: { a: 1 }\n'),
    ],
    [
      `${name}: a version of nothing`,
      [name, '-f', '-'],
      4,
      /expected version 1, found nothing: it does not exist/,
      file('metadata: { type: thing, id: none, version: "1" }\nspec: {}\n'),
    ],
    [
      `${name}: owned`,
      [name, '-f', '-'],
      4,
      /owned by the controller its-controller; change what it is made from/,
      file('metadata: { type: thing, id: owned }\nspec: { a: 1 }\n'),
    ],
    [
      `${name}: on its way out`,
      [name, '-f', '-'],
      4,
      /is in phase tearingDown, expected running\n.*steadystate why Things\.example\.dev going/,
      file('metadata: { type: thing, id: going }\nspec: { a: 1 }\n'),
    ],
  ]),
  ['plan: a module that is not there', ['plan', '-f', '-', '--module', 'none.mjs'], 1, /the module none\.mjs cannot be loaded/],
  ['plan: an output that it has not', ['plan', '-f', '-', '-o', 'wide'], 2, /plan prints text/],
  ['serve: a module that is not there', ['serve', 'none.mjs', '--store', 'memory:'], 1, /the module none\.mjs cannot be loaded/],
  ['serve: for everybody', ['serve', '--listen', 'grpc://0.0.0.0:1'], 2, /--listen: .*not a loopback address/],
  ['serve: a path that is too long', ['serve', '--listen', `unix:${'x'.repeat(120)}`], 2, /--listen: .*at most 100 work everywhere/],
  [
    'serve: where somebody serves',
    ['serve', '--store', 'memory:'],
    1,
    /a server is running at .*api\.sock; stop it, or choose another path/,
  ],
  ['up: what is no state', ['up', '--until', 'done'], 2, /--until: expected ready, found done/],
  ['up: a missing file', ['up', 'none.yaml'], 3, /none\.yaml does not exist/],
  ['get: a label query', ['get', 'thing', '-l', '=='], 2, /-l: cannot read "=="/],
  ['get: a path to sort by', ['get', 'thing', '--sort-by', '{.a['], 2, /JSONPath/],
  ['get: ids of all namespaces', ['get', 'thing', 'a', '-A'], 2, /ids and -A cannot be combined/],
  ['get: ids and labels', ['get', 'thing', 'a', '-l', 'a=b'], 2, /ids and -l cannot be combined/],
  ['get: a watch as JSON', ['get', 'thing', '-w', '-o', 'json'], 2, /steadystate watch TYPE -o json/],
  ['watch: an output that it has not', ['watch', 'thing', '-o', 'yaml'], 2, /watch prints lines/],
  ['watch: what is no bookmark', ['watch', 'thing', '--from', 'not!base64'], 2, /--from: expected a bookmark/],
  ['watch: a bookmark of another store', ['watch', 'thing', '--from', 'AAAA'], 1, /bookmark.*list again and watch from there/],
  ['why: an output that it has not', ['why', 'thing', 'plain', '-o', 'wide'], 2, /why prints text/],
  ['graph: an output that it has not', ['graph', '-o', 'png'], 2, /unknown output png; expected dot, mermaid or json/],
  ['events: of what', ['events', '--for', 'thing'], 2, /--for: expected TYPE\/ID/],
  [
    'label: neither set nor removed',
    ['label', 'thing', 'plain', 'nonsense'],
    2,
    /expected key=value, or key- to remove it, found nonsense/,
  ],
  ['annotate: neither', ['annotate', 'thing', 'plain', '='], 2, /expected key=value/],
  ['release-finalizer: none such', ['release-finalizer', 'thing', 'going', 'other'], 3, /has no finalizer other; it has hold/],
  ['logs: of no stack', ['logs', 'none'], 3, /Stacks\.host\.steadystate\.dev\/default\/none does not exist\nsee what there is/],
  ['logs: no number', ['logs', 'none', '--tail', 'x'], 2, /--tail: expected a number of lines, found x/],
  ['restart: of no stack', ['restart', 'none', 'api'], 3, /none does not exist/],
  ['completion: another shell', ['completion', 'csh'], 2, /unknown shell csh; expected bash, zsh or fish/],
  ['edit: no editor', ['edit', 'thing', 'plain'], 2, /set EDITOR/, { variables: {} }],
  ['edit: owned', ['edit', 'thing', 'owned'], 4, /owned by the controller its-controller/],
  ['edit: on its way out', ['edit', 'thing', 'going'], 4, /is in phase tearingDown, expected running/],
  ['wait: no goal', ['wait', 'thing', 'plain'], 2, /required option '--for <goal>'/],
  ...['lunch', 'condition', 'condition=', 'jsonpath=', 'jsonpath=nonsense', 'jsonpath={.a[}', ''].map((goal) => [
    `wait: ${goal} is no goal`,
    ['wait', 'thing', 'plain', `--for=${goal}`],
    2,
    /--for|JSONPath/,
  ]),
  ['wait: a type that has no readiness', ['wait', 'Rocks.example.dev', 'plain', '--for=ready'], 2, /Rocks\.example\.dev has no readiness/],
  ['wait: what waiting does not mend', ['wait', 'thing', 'broken', '--for=ready'], 1, /Broken: it fell/],
  [
    'wait ready: in time',
    ['wait', 'thing', 'plain', '--for=ready', '--timeout', '50ms'],
    5,
    /timed out after (?:\d+ms|[1-9]\d*s): NotYet: soon/,
  ],
  ['wait ready: absent', ['wait', 'thing', 'none', '--for=ready', '--timeout', '1ms'], 5, /timed out after (?:\d+ms|[1-9]\d*s): NotFound/],
  ['wait condition: in time', ['wait', 'thing', 'plain', '--for=condition=Ready', '--timeout', '1ms'], 5, /timed out/],
  ['wait jsonpath: in time', ['wait', 'thing', 'plain', '--for=jsonpath={.spec.a}=1', '--timeout', '1ms'], 5, /\{\.spec\.a\} is not there/],
  [
    'wait destroyed: in time',
    ['wait', 'thing', 'going', '--for=destroyed', '--timeout', '1ms'],
    5,
    /still there; finalizers: hold; ask: steadystate why Things\.example\.dev going/,
  ],
] as [string, readonly string[], number, RegExp, InProcessOptions?][])('%s', async (_name, args, code, message, options) => {
  await mkdir(place.path('empty'), { recursive: true });
  await fails(args, code, message, options);
});

describe('what was said before a failure stays', () => {
  test('apply --wait: 5 for what is not ready in time, with the reason', async () => {
    const result = await runInProcess(place.folder, ['apply', '-f', '-', '--wait', '--timeout', '1ms'], { input });
    expect(result).toMatchObject({
      code: 5,
      stdout: expect.stringMatching(/^things\/plain (?:configured|unchanged)\n/),
      stderr: expect.stringContaining('NotYet: soon'),
    });
  });

  test('delete --wait: 5 for what is held', async () => {
    expect(await runInProcess(place.folder, ['delete', 'thing', 'going', '--wait', '--timeout', '1ms'])).toMatchObject({
      code: 5,
      stdout: 'things/going is being deleted\n',
      stderr: expect.stringContaining('finalizers: hold'),
    });
  });

  test('of several, the worst code wins and each failure is told', async () => {
    const several = 'metadata: { type: thing, id: a }\nspec: {}\n---\nmetadata: { type: thing, id: b, labels: { x: "1" } }\nspec: {}\n';
    expect((await runInProcess(place.folder, ['apply', '-f', '-'], { input: several })).code).toBe(0);
    expect(await runInProcess(place.folder, ['delete', 'thing', 'none', 'a', 'owned', 'b'])).toMatchObject({
      code: 4,
      stdout: 'things/a deleted\nthings/b deleted\n',
      stderr: expect.stringMatching(/none does not exist[\s\S]*owned is owned by the controller/),
    });
  });

  test('diff and plan: 6', async () => {
    const changed = 'metadata: { type: thing, id: plain }\nspec: { a: 2 }\n';
    expect(await runInProcess(place.folder, ['diff', '-f', '-'], { input: changed })).toMatchObject({ code: 6, stderr: '' });
    await place.write('other.mjs', `export * from './module.mjs';\n`);
    expect(await runInProcess(place.folder, ['plan', '-f', '-', '--module', 'other.mjs'], { input: changed })).toMatchObject({
      code: 6,
      stderr: '',
    });
  });

  test('edit: 4 when somebody was faster, 1 when the text is wrong; the text is kept', async () => {
    const edited = (text: string, during: () => Promise<unknown> = async () => {}) =>
      runInProcess(place.folder, ['edit', 'thing', 'plain'], {
        variables: { EDITOR: 'x', TMPDIR: place.folder },
        openEditor: async (_editor, path) => {
          await during();
          await writeFile(path, text);
          return 0;
        },
      });
    const { stdout } = await runInProcess(place.folder, ['get', 'thing', 'plain', '-o', 'yaml']);
    const rival = () => runInProcess(place.folder, ['annotate', 'thing', 'plain', 'rival=yes', '--overwrite']);
    expect(await edited(stdout.replace('spec: {}', 'spec: { mine: 1 }'), rival)).toMatchObject({
      code: 4,
      stdout: '',
      stderr: expect.stringMatching(/changed meanwhile[\s\S]*your text is kept in \S+;/),
    });
    expect(await edited('metadata: [')).toMatchObject({
      code: 1,
      stdout: '',
      stderr: expect.stringMatching(/:\d+:\d+: [\s\S]*your text is kept/),
    });
  });
});

test('a server that takes the call and never answers: --timeout ends every look with 5', async () => {
  const sockets = new Set<{ destroy(): void }>();
  const silent = createServer((socket) => void sockets.add(socket));
  const path = join(place.folder, 'silent.sock');
  await new Promise<void>((resolve) => silent.listen(path, resolve));
  for (const args of [['get', 'thing'], ['types'], ['why', 'thing', 'a'], ['label', 'thing', 'a', 'b=c']]) {
    const result = await runInProcess(place.folder, [...args, '--store', `unix:${path}`, '--timeout', '100ms']);
    expect({ args, code: result.code, stdout: result.stdout, stderr: result.stderr }).toEqual({
      args,
      code: 5,
      stdout: '',
      stderr: 'timed out after 100ms; give it more with --timeout\n',
    });
  }
  for (const socket of sockets) socket.destroy();
  await new Promise((resolve) => silent.close(resolve));
});
