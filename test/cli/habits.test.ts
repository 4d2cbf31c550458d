import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { Workplace } from './harness.ts';
import type { InProcessOptions } from './in-process.ts';
import { runInProcess } from './in-process.ts';

// What people who know kubectl type.

let place: Workplace;

const things = ['a', 'team/b', 'c']
  .map((id, index) => `metadata: { type: thing, id: ${id}, labels: { app: app-${index} } }\nspec: { size: ${index}, tags: ["x,y", z] }\n`)
  .join('---\n');

beforeAll(async () => {
  place = await Workplace.make();
  await place.serveModule(`
export const definitions = [defineResource({ type: 'Things.example.dev', spec }), defineResource({ type: 'Rocks.example.dev', spec })];
`);
  expect((await run(['apply', '-f', '-'], { input: things })).code).toBe(0);
});

afterAll(() => place[Symbol.asyncDispose]());

const run = (args: readonly string[], options: InProcessOptions = {}) => runInProcess(place.folder, args, options);
const text = async (...args: readonly string[]): Promise<string> => {
  const result = await run(args);
  expect(result).toMatchObject({ code: 0, stderr: '', open: {} });
  return result.stdout;
};

describe('TYPE/ID', () => {
  test('is TYPE ID in every command that takes them, wherever it stands among options', async () => {
    expect(await text('get', 'thing/a', '-o', 'name')).toBe('things/a\n');
    expect(await text('get', '-o', 'name', 'Things.example.dev/team/b')).toBe('things/team/b\n');
    expect(await text('get', '-oname', 'thing/team/b', '-n', 'default', 'thing/a')).toBe('things/team/b\nthings/a\n');
    expect(await text('describe', '--namespace=default', 'thing/a')).toMatch(/^namespace: default\ntype: Things\.example\.dev\nid: a\n/);
    expect(await text('wait', '--for=create', 'thing/a')).toBe('a: create\n');
    expect(await text('label', 'thing/a', 'x=1/2')).toBe('things/a labelled\n');
    expect(await text('annotate', 'thing/a', 'note=thing/a')).toBe('things/a labelled\n'.replace('labelled', 'annotated'));
    expect(await text('get', 'thing/a', '-o', 'jsonpath={.metadata.annotations.note}')).toBe('thing/a');
  });

  test('an id may hold slashes still', async () => {
    expect(await text('get', 'thing', 'team/b', '-o', 'name')).toBe('things/team/b\n');
    expect(await run(['get', 'thing/'])).toMatchObject({ code: 2, stderr: expect.stringContaining('ID: expected 1 to 1024 bytes') });
    for (const name of ['stack/none', 'Stacks.host.steadystate.dev/none', 'process/none/web', 'ps/none/web'])
      for (const args of [
        ['logs', name],
        ['restart', name, ...(name.startsWith('p') ? [] : ['web'])],
      ])
        expect(await run(args)).toMatchObject({ code: 3, stderr: expect.stringMatching(/default\/none does not exist/) });
  });
});

describe('get', () => {
  test('--ignore-not-found: nothing is no failure, and what is there is shown', async () => {
    for (const more of [[], ['-o', 'json'], ['-o', 'name']])
      expect(await text('get', 'thing', 'none', '--ignore-not-found', ...more)).toBe('');
    expect(await text('get', 'thing', 'none', 'a', '--ignore-not-found', '-o', 'name')).toBe('things/a\n');
  });

  test('--show-labels', async () => {
    expect(await text('get', 'thing', 'c', '--show-labels')).toMatch(/^ID +PHASE +AGE +LABELS\nc +running +\S+ +app=app-2\n$/);
  });

  test('-o custom-columns: paths with and without braces, what is not there, commas inside of a path', async () => {
    const columns = 'custom-columns=ID:.metadata.id,SIZE:{.spec.size},NONE:spec.none,TAG:{.spec.tags[0,1]}';
    expect(await text('get', 'thing', 'a', 'team/b', '-o', columns)).toBe(
      'ID       SIZE   NONE     TAG\na        0      <none>   x,y,z\nteam/b   1      <none>   x,y,z\n',
    );
    expect(await text('get', 'thing', '-l', 'app=app-2', '-o', 'custom-columns=X:.metadata.id', '--no-headers')).toBe('c\n');
    for (const bad of ['', 'ID', ':.a', 'ID:', 'ID:.a['])
      expect(await run(['get', 'thing', '-o', `custom-columns=${bad}`])).toMatchObject({ code: 2, stdout: '' });
  });

  test('switches with a value', async () => {
    expect(await text('get', 'thing', 'c', '--no-headers=true', '-w=false', '--watch=false', '-o', 'name')).toBe('things/c\n');
  });

  test.each([
    ['things,rocks', /one type at a time/],
    ['all', /name a type; those that there are: steadystate types/],
  ])('%s', async (types, message) => {
    expect(await run(['get', types])).toMatchObject({ code: 2, stdout: '', stderr: expect.stringMatching(message) });
  });
});

describe('apply --dry-run', () => {
  const input = `${things}---\nmetadata: { type: thing, id: new }\nspec: {}\n`.replace('size: 1', 'size: 9');
  test.each([['--dry-run'], ['--dry-run=server'], ['--dry-run=client']])('%s tells, and writes nothing', async (option) => {
    expect(await run(['apply', '-f', '-', option, '--wait'], { input })).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(
        /^things\/a \w+ \(dry run\)\nthings\/team\/b configured \(dry run\)\nthings\/c unchanged \(dry run\)\nthings\/new created \(dry run\)\n$/,
      ),
    });
    expect((await run(['get', 'thing', 'new'])).code).toBe(3);
    expect(await text('get', 'thing', 'team/b', '-o', 'jsonpath={.spec.size}')).toBe('1');
  });

  test('makes no store, and finds what apply would', async () => {
    const empty = await Workplace.make();
    expect(await runInProcess(empty.folder, ['apply', '-f', '-', '--dry-run', '--store', 'sqlite:x.db'], { input })).toMatchObject({
      code: 3,
    });
    await empty[Symbol.asyncDispose]();
    expect(await run(['apply', '-f', '-', '--dry-run'], { input: 'metadata: { type: thing }\nspec: {}\n' })).toMatchObject({ code: 1 });
    expect((await run(['apply', '-f', '-', '--dry-run=maybe'], { input })).code).toBe(2);
  });
});

describe('delete', () => {
  const rocks = (...ids: readonly string[]): string =>
    ids.map((id) => `metadata: { type: rock, id: ${id}, labels: { sort: ${id[0]} } }\nspec: {}\n`).join('---\n');

  test('by labels, and all of a type in one namespace', async () => {
    const other = rocks('b3').replace('type: rock', 'type: rock, namespace: other');
    expect((await run(['apply', '-f', '-'], { input: `${rocks('a1', 'a2', 'b1', 'b2')}---\n${other}` })).code).toBe(0);
    expect(await text('delete', 'rock', '-l', 'sort=a', '--wait=true')).toBe('rocks/a1 deleted\nrocks/a2 deleted\n');
    expect(await text('delete', 'rocks', '--all')).toBe('rocks/b1 deleted\nrocks/b2 deleted\n');
    expect(await text('get', 'rocks', '-A', '-o', 'name')).toBe('rocks/b3\n');
    expect(await run(['delete', 'rocks', '--all'])).toMatchObject({ code: 0, stdout: '', stderr: 'no Rock in default\n' });
  });

  test('--ignore-not-found', async () => {
    expect((await run(['apply', '-f', '-'], { input: rocks('c1') })).code).toBe(0);
    expect(await text('delete', 'rock', 'none', 'c1', '--ignore-not-found')).toBe('rocks/c1 deleted\n');
    expect((await run(['delete', 'rock', 'none'])).code).toBe(3);
  });

  test.each([
    ['delete', 'rock', 'a', '--all'],
    ['delete', 'rock', 'a', '-l', 'a=b'],
    ['delete', 'rock', '--all', '-l', 'a=b'],
    ['delete', '-f', 'x.yaml', '--all'],
    ['delete', 'rock', '-l', '=='],
  ])('%s %s %s %s is wrong use', async (...args) => {
    expect(await run(args)).toMatchObject({ code: 2, stdout: '' });
  });
});

describe('wait', () => {
  test('--for=delete, --for=create, and a path without braces', async () => {
    expect(await text('wait', 'thing/none', '--for=delete')).toBe('none: delete\n');
    expect(await text('wait', 'thing', 'c', '--for=jsonpath=.spec.size=2')).toBe('c: jsonpath=.spec.size=2\n');
    expect(await run(['wait', 'thing', 'none', '--for=create', '--timeout', '10ms'])).toMatchObject({
      code: 5,
      stderr: expect.stringContaining('it does not exist'),
    });
    expect((await run(['wait', 'thing', 'c', '--for=delete', '--timeout', '10ms'])).code).toBe(5);
  });
});

test('help COMMAND', async () => {
  expect(await text('help', 'get')).toBe(await text('get', '--help'));
  expect(await text('help')).toBe(await text('--help'));
});

describe('what is not here says what stands for it', () => {
  test.each([
    [['get', 'things', '--field-selector=spec.size=1'], /^error: unknown option '--field-selector=spec\.size=1'\nselect by labels with -l/],
    [['get', '-f', 'x.yaml'], /name it: TYPE ID/],
    [['describe', 'thing/a', '-o', 'yaml'], /steadystate get TYPE ID -o yaml/],
    [['apply', '-f', '.', '-R'], /name each with another -f/],
    [['apply', '-k', 'x'], /steadystate apply -f -/],
    [['apply', '-f', 'x', '--server-side'], /nothing to choose/],
    [['apply', 'x.yaml'], /too many arguments[\s\S]*name files with -f FILE/],
    [['apply', '-f', 'https://example.com/x.yaml'], /is a URL; download it first/],
    [['diff', 'x.yaml'], /name files with -f FILE/],
    [['delete', 'thing/a', '--force', '--grace-period=0'], /never forces; .*steadystate why TYPE ID/],
    [['delete', 'thing/a', '--dry-run=client'], /diff -f FILE and plan -f FILE/],
    [['wait', 'thing', '--all', '--for=ready'], /steadystate apply -f FILE --wait/],
    [['wait', 'thing/a', 'thing/c', '--for=ready'], /one resource is waited for/],
    [['logs', 'shop', '--since=1m'], /without times; the last lines are shown by --tail/],
    [['logs', 'shop', '-p'], /earlier runs are in the same output/],
    [['logs', 'shop', '--previous'], /earlier runs are in the same output/],
    [['logs', 'shop', '-capi'], /steadystate logs STACK SERVICE/],
    [['get', 'things', '--kubeconfig', 'x'], /named by --store URL/],
    [['explain', 'thing'], /^error: unknown command 'explain'\ntypes are shown by: steadystate types/],
    [['rollout', 'restart', 'stack/shop'], /steadystate restart STACK SERVICE/],
    [['create', '-f', 'x'], /steadystate apply/],
    [['config', 'view'], /named by --store URL/],
  ] as [readonly string[], RegExp][])('%j', async (args, message) => {
    const result = await run(args);
    expect(result).toMatchObject({ code: 2, stdout: '', stderr: expect.stringMatching(message) });
    expect(result.stderr).not.toContain('Did you mean');
    expect(result.stderr).toMatch(/\nsee: steadystate [a-z ]*--help\n$/);
  });

  test('what nobody knows is said as ever', async () => {
    expect((await run(['gte', 'x'])).stderr).toContain('(Did you mean get?)');
    for (const word of ['constructor', '__proto__', 'toString'])
      expect((await run([word])).stderr).toMatch(/^error: unknown command '\w+'\nsee: /);
    expect((await run(['get', '--constructor'])).stderr).toMatch(/^error: unknown option '--constructor'\nsee: /);
  });
});
