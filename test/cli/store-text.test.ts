import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { openSqliteState } from '../../src/backends/sqlite/index.ts';
import { ExitError, exitCodes } from '../../src/cli/exit-codes.ts';
import { runCli } from '../../src/cli/index.ts';
import { nodeEnvironment } from '../../src/environment/index.ts';
import { Bytes } from '../../src/resource/index.ts';
import { program, smallStack, Workplace } from './harness.ts';
import { quietIo } from './in-process.ts';

const environment = nodeEnvironment();
const kind = { namespace: 'default', type: 'Notes.example.dev' };
let place: Workplace;

beforeEach(async () => {
  place = await Workplace.make();
});
afterEach(() => place[Symbol.asyncDispose]());

const open = (name = 'state.db') => openSqliteState({ file: place.path(name), environment });

/** A store with everything that metadata and specs can hold. */
async function fill(): Promise<string> {
  await using state = await open();
  await state.create({ metadata: { ...kind, id: 'gone' }, spec: 1 });
  await state.create(
    {
      metadata: {
        ...kind,
        id: 'ü/b',
        phase: 'tearingDown',
        finalizers: ['z', 'a'],
        labels: { 'a/b': 'ä "q"' },
        annotations: { n: 'one\n---\ntwo' },
      },
      spec: { big: -(2n ** 80n), bytes: Bytes.from(new Uint8Array([0, 255])), $tag: { $integer: '1' }, yes: 'yes', no: null, float: 1e-7 },
    },
    { owner: 'somebody' },
  );
  await state.create({ metadata: { ...kind, namespace: 'other', id: 'list' }, spec: ['---', '- x', { deep: [[], {}] }, '\u0085\u2028'] });
  await state.destroy({ ...kind, id: 'gone' });
  await state.update(await state.get({ ...kind, namespace: 'other', id: 'list' }));
  return await everything(state);
}

async function everything(state: Awaited<ReturnType<typeof open>>): Promise<string> {
  const all: unknown[] = [];
  for await (const { metadata, spec } of state.admin.export())
    all.push([
      metadata,
      JSON.stringify(spec, (_key, value) => (typeof value === 'bigint' ? `${value}n` : Bytes.is(value) ? value.toBase64() : value)),
    ]);
  return JSON.stringify(all);
}

describe('export and import', () => {
  test.each(['all.yaml', 'all.jsonl'])('%s holds every bit of a store, and gives it back to an empty one', async (file) => {
    const before = await fill();
    expect(await place.run(['store', 'export', file, '--store', 'sqlite:state.db'])).toMatchObject({
      code: 0,
      stderr: '',
      stdout: `${place.path(file)}: 2 resources\n`,
    });
    expect(statSync(place.path(file)).mode & 0o777).toBe(0o600);
    const done = await place.run(['store', 'import', file, '--store', 'sqlite:new/state.db']);
    expect(done).toMatchObject({ code: 0, stderr: '', stdout: expect.stringContaining('2 resources, with the uids that they had') });
    await using state = await open('new/state.db');
    expect(await everything(state)).toBe(before);
    expect(state.revision).toBeGreaterThan(2 ** 32);
  });

  test('standard output and input, beside a running server too', async () => {
    await fill();
    const server = place.start(['serve', '--store', 'sqlite:state.db', '--listen', 'unix:./s.sock']);
    await server.shows('serving');
    const yaml = await place.run(['store', 'export', '--store', 'unix:./s.sock']);
    expect(yaml).toMatchObject({ code: 0, stderr: '' });
    const again = await place.run(['store', 'import', '-', '--store', 'unix:./s.sock'], { input: yaml.stdout });
    expect(again).toMatchObject({ code: 0, stderr: '', stdout: expect.stringMatching(/^0 created, \d+ were there already, 0 failed\n$/) });
    const json = await place.run(['store', 'export', '-o', 'json', '--store', 'unix:./s.sock']);
    expect(
      json.stdout
        .trim()
        .split('\n')
        .map((line) => JSON.parse(line).metadata.uid),
    ).toContain('2');
    expect(await place.run(['store', 'import', '-', '--store', 'sqlite:copy.db'], { input: json.stdout })).toMatchObject({ code: 0 });
    await using copy = await open('copy.db');
    expect((await copy.get({ ...kind, id: 'ü/b' })).spec).toMatchObject({ big: -(2n ** 80n) });
  });

  test('a large YAML text takes time by its length: no document is read behind the lines of all before it', async () => {
    const count = 1_200;
    const lines = Array.from(
      { length: count },
      (_, n) => `---\nmetadata: { namespace: a, type: b.c, id: n${n} }\nspec: |\n${'  line\n'.repeat(700)}`,
    );
    await place.write('large.yaml', lines.join(''));
    expect(await place.run(['store', 'import', 'large.yaml', '--store', 'sqlite:large.db'])).toMatchObject({ code: 0, stderr: '' });
    await place.write('late.yaml', `${lines.slice(0, 1_000).join('')}---\nmetadata: [\n`);
    expect((await place.run(['store', 'import', 'late.yaml', '--store', 'sqlite:late.db'])).stderr).toMatch(/late\.yaml:703\d{3}:\d+: /);
  }, 120_000);

  test('a whole number of any size is read exactly, however its line is written', async () => {
    const line = '{ "metadata": {"namespace":"default","type":"Notes.example.dev","id":"d"}, "spec": {"a": 123456789012345678901} }\n';
    expect(await place.run(['store', 'import', '-', '--store', 'sqlite:exact.db'], { input: line })).toMatchObject({ code: 0, stderr: '' });
    await using state = await open('exact.db');
    expect((await state.get({ ...kind, id: 'd' })).spec).toEqual({ a: 123456789012345678901n });
  });

  test('YAML documents of which the first is a line of JSON', async () => {
    const one = '{"metadata":{"namespace":"default","type":"Notes.example.dev","id":"a"},"spec":1}';
    for (const [index, text] of [`# x\n${one}\n---\n`, `---\n${one}\n---\n`, `${one}\n\n# y\n--- # z\n`].entries()) {
      const input = `${text}metadata: { namespace: default, type: Notes.example.dev, id: b }\nspec: 2\n---\n${one.replace('"a"', '"c"')}\n`;
      const done = await place.run(['store', 'import', '-', '--store', `sqlite:first${index}.db`], { input });
      expect(done).toMatchObject({ code: 0, stderr: '', stdout: expect.stringContaining('3 resources') });
    }
    const single = await place.run(['store', 'import', '-', '--store', 'sqlite:single.db'], { input: one });
    expect(single).toMatchObject({ code: 0, stderr: '', stdout: expect.stringContaining('1 resources') });
  });

  test('an import into a store that holds something, cut short, tells what is written and how to go on', async () => {
    {
      await using state = await open('state.db');
      await state.create({ metadata: { ...kind, id: 'mine' }, spec: 1 });
    }
    const count = 3_000;
    const text = Array.from({ length: count }, (_, n) => JSON.stringify({ metadata: { ...kind, id: `n${n}` }, spec: n })).join('\n');
    await place.write('many.jsonl', text);
    const aborter = new AbortController();
    const written = async (): Promise<number> => {
      await using state = await open('state.db');
      return (await state.list(kind)).items.length - 1;
    };
    // Ends while the second half is read, after the check.
    const environment = nodeEnvironment();
    let reads = 0;
    const files = {
      ...environment.files,
      readRange: async (...args: Parameters<typeof environment.files.readRange>) => {
        if (++reads === 2) setImmediate(() => setImmediate(() => aborter.abort(new ExitError(exitCodes.interrupted))));
        return environment.files.readRange(...args);
      },
    };
    let stderr = '';
    const io = { ...quietIo(place.folder), signal: aborter.signal, writeError: (more: string) => void (stderr += more) };
    const args = ['store', 'import', 'many.jsonl', '--store', 'sqlite:state.db'];
    expect(await runCli(args, io, { ...environment, files })).toBe(130);
    const [, told] = /interrupted; (\d+) resources are written already; import the file once more to go on/.exec(stderr) ?? [];
    expect(await written()).toBe(Number(told));
    expect(await place.run(args)).toMatchObject({
      code: 0,
      stdout: `${count - Number(told)} created, ${told} were there already, 0 failed\n`,
    });
  });

  test('into a store that holds something: new uids, what is there stays, and each conflict is told', async () => {
    await fill();
    await place.run(['store', 'export', 'all.yaml', '--store', 'sqlite:state.db']);
    {
      await using state = await open('other.db');
      await state.create({ metadata: { ...kind, namespace: 'other', id: 'list' }, spec: 'mine' });
      for (let n = 0; n < 5; n++) await state.create({ metadata: { ...kind, id: `n${n}` }, spec: n });
    }
    const done = await place.run(['store', 'import', 'all.yaml', '--store', 'sqlite:other.db']);
    expect(done).toMatchObject({ code: 4, stdout: '1 created, 0 were there already, 1 failed\n' });
    expect(done.stderr).toMatch(/all\.yaml:\d+: Notes\.example\.dev\/other\/list already exists/);
    await using state = await open('other.db');
    expect((await state.get({ ...kind, namespace: 'other', id: 'list' })).spec).toBe('mine');
    const { metadata } = await state.get({ ...kind, id: 'ü/b' });
    expect(metadata).toMatchObject({ uid: '7', owner: 'somebody', phase: 'tearingDown', finalizers: ['z', 'a'] });
  });

  test.each([
    [
      'a field that is none',
      'metadata: { namespace: a, type: b.c, id: d }\nspec: 1\n---\nmetadata: { namespace: a, type: b.c, id: e, color: red }\nspec: 1\n',
      /bad\.yaml:4: metadata\.color: unknown field/,
    ],
    ['no spec', '{"metadata":{"namespace":"a","type":"b.c","id":"d"}}\n', /bad\.yaml:1: spec: /],
    ['no resource', '{"metadata":{"namespace":"a","type":"b.c","id":"d"},"spec":1}\n[]\n', /bad\.yaml:2: expected a resource/],
    [
      'broken JSON',
      '{"metadata":{"namespace":"a","type":"b.c","id":"d"},"spec":1}\n{"metadata"\n',
      /bad\.yaml:2: this line is no JSON text/,
    ],
    ['broken YAML', 'metadata: { namespace: a, type: b.c, id: d }\nspec: 1\n---\nmetadata: [\n', /bad\.yaml:\d+:\d+: /],
    [
      'a number that would be rounded',
      '{"metadata":{"namespace":"a","type":"b.c","id":"d"},"spec":1}\n{"metadata":{"namespace":"a","type":"b.c","id":"e"},"spec":9007199254740993.0}\n',
      /bad\.yaml:2:\d+: spec: 9007199254740993\.0 is a whole number beyond 2\^53/,
    ],
    [
      'a number that is none',
      '{"metadata":{"namespace":"a","type":"b.c","id":"d"},"spec":1e400}\n',
      /bad\.yaml:1:\d+: spec: 1e400 is not a finite number/,
    ],
    [
      'a key twice',
      '{"metadata":{"namespace":"a","type":"b.c","id":"d"},"spec":{"a":1,"a":2}}\n',
      /bad\.yaml:1:\d+: spec\.a: this key stands here twice/,
    ],
    [
      'a key that is no data',
      '{"metadata":{"namespace":"a","type":"b.c","id":"d"},"spec":{"__proto__":{"polluted":1}}}\n',
      /bad\.yaml:1:\d+: spec\.__proto__: this key is not allowed/,
    ],
    [
      'nested too deep',
      `{"metadata":{"namespace":"a","type":"b.c","id":"d"},"spec":${'['.repeat(50_000)}${']'.repeat(50_000)}}\n`,
      /bad\.yaml:1:\d+: nested deeper than 100 levels/,
    ],
    [
      'one name twice',
      '{"metadata":{"namespace":"a","type":"b.c","id":"d"},"spec":1}\n{"metadata":{"namespace":"a","type":"b.c","id":"d"},"spec":1}\n',
      /d is there twice/,
    ],
    [
      'one uid twice',
      '{"metadata":{"namespace":"a","type":"b.c","id":"d","uid":"1","version":"2"},"spec":1}\n{"metadata":{"namespace":"a","type":"b.c","id":"e","uid":"1","version":"2"},"spec":1}\n',
      /uid 1 is there twice/,
    ],
    [
      'some with a uid, some without',
      '{"metadata":{"namespace":"a","type":"b.c","id":"d","uid":"1","version":"2"},"spec":1}\n{"metadata":{"namespace":"a","type":"b.c","id":"e"},"spec":1}\n',
      /1 resources have a uid and a version, 1 have not/,
    ],
    [
      'a uid that is none',
      '{"metadata":{"namespace":"a","type":"b.c","id":"d","uid":"x","version":"2"},"spec":1}\n',
      /expected a uid and a version of a store/,
    ],
    [
      'what a schema refuses',
      smallStack
        .replace('metadata: { type: stack, id: small }', 'metadata: { namespace: default, type: Stacks.host.steadystate.dev, id: small }')
        .replace('command:', 'comand:'),
      /nothing was written:[\s\S]*comand/,
    ],
    ['nothing', '# empty\n', /nothing to do/],
  ])('%s: nothing is written', async (_name, text, message) => {
    await place.write('bad.yaml', text);
    const done = await place.run(['store', 'import', 'bad.yaml', '--store', 'sqlite:state.db']);
    expect(done).toMatchObject({ code: 1, stdout: '' });
    expect(done.stderr).toMatch(message);
    expect(readdirSync(place.folder)).toEqual(['bad.yaml']);
  });

  test('children come after their parents, whatever the file says; the controller of a running server keeps them', async () => {
    const server = place.start(['up', await place.write('small.yaml', smallStack)]);
    await server.shows('ready: small');
    expect(await place.run(['store', 'export', 'all.jsonl'])).toMatchObject({ code: 0 });
    server.kill('SIGINT');
    await server.result;
    const lines = readFileSync(place.path('all.jsonl'), 'utf8').trim().split('\n').reverse();
    await place.write('reversed.jsonl', `${lines.join('\n')}\n`);
    const elsewhere = place.path('elsewhere');
    mkdirSync(elsewhere);
    const other = place.start(['up', '--store', 'sqlite:elsewhere/state.db']);
    await other.shows(/\.steadystate\/api\.sock/).catch(() => {});
    await expect.poll(async () => (await place.run(['get', 'stacks'])).code, { timeout: 15_000 }).toBe(0);
    const done = await place.run(['store', 'import', 'reversed.jsonl']);
    expect(done.stdout).toMatch(/created/);
    expect(await place.run(['wait', 'stack', 'small', '--for=ready', '--timeout', '60s'])).toMatchObject({ code: 0 });
    const processes = await place.run(['get', 'processes', '-o', 'name']);
    expect(processes.stdout.match(/processes\/small\//g)).toHaveLength(2);
  }, 90_000);

  test('a file that is there is not replaced without a word; wrong use is told', async () => {
    await fill();
    await place.write('all.yaml', 'mine');
    const store = ['--store', 'sqlite:state.db'];
    expect(await place.run(['store', 'export', 'all.yaml', ...store])).toMatchObject({
      code: 4,
      stderr: expect.stringMatching(/exists already/),
    });
    expect(await place.run(['store', 'export', 'state.db', '--force', ...store])).toMatchObject({ code: 2 });
    expect(await place.run(['store', 'export', 'all.yaml', '--force', ...store])).toMatchObject({ code: 0 });
    expect(await place.run(['store', 'export', '-o', 'table', ...store])).toMatchObject({ code: 2 });
    expect(await place.run(['store', 'import', 'none.yaml', ...store])).toMatchObject({ code: 3 });
    expect(await place.run(['store', 'import', ...store])).toMatchObject({ code: 2 });
  });
});

test.runIf(existsSync('/dev/full'))('what cannot be printed is a failure, with no word lost about it', async () => {
  await fill();
  for (const args of [['version'], ['--help'], ['store', 'export', '--store', 'sqlite:state.db']]) {
    const line = 'unset INIT_CWD; exec "$0" "$@" > /dev/full';
    const { status, stderr } = spawnSync('sh', ['-c', line, process.execPath, program, ...args], { cwd: place.folder, encoding: 'utf8' });
    expect({ args, status, stderr }).toMatchObject({
      status: 1,
      stderr: expect.stringMatching(/^standard output could not be written \(ENOSPC/),
    });
  }
});

test('an export that finds no room says where and what to do, and leaves nothing', async () => {
  await fill();
  const line = 'unset INIT_CWD; ulimit -f 1; trap "" XFSZ; exec "$0" "$@"';
  await place.write(
    'large.yaml',
    `metadata: { ...kind, id: large }`.replace('...kind', 'namespace: default, type: Notes.example.dev') +
      `\nspec: ${'x'.repeat(20_000)}\n`,
  );
  expect(await place.run(['apply', '-f', 'large.yaml', '--store', 'sqlite:state.db'])).toMatchObject({ code: 0 });
  const args = ['store', 'export', 'all.jsonl', '--store', 'sqlite:state.db'];
  const { status, stdout, stderr } = spawnSync('sh', ['-c', line, process.execPath, program, ...args], {
    cwd: place.folder,
    encoding: 'utf8',
  });
  expect({ status, stdout }).toEqual({ status: 1, stdout: '' });
  expect(stderr).toMatch(/all\.jsonl could not be written: .*; make room, or name a file elsewhere\n$/);
  expect(readdirSync(place.folder).filter((name) => name.includes('all.jsonl'))).toEqual([]);
});
