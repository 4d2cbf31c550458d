import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Background } from './harness.ts';
import { smallStack, Workplace } from './harness.ts';

describe('without a store', () => {
  let place: Workplace;
  beforeAll(async () => {
    place = await Workplace.make();
  });
  afterAll(() => place[Symbol.asyncDispose]());

  test.each([
    [
      'a look makes no store',
      ['get', 'stacks'],
      1,
      /no store here: neither .*api\.sock answers nor does .*state\.db exist; start one with: steadystate up/,
    ],
    [
      'a named file that is missing',
      ['get', 'stacks', '--store', 'sqlite:none.db'],
      3,
      /does not exist; start one with: steadystate serve/,
    ],
    ['a server that is missing', ['get', 'stacks', '--store', 'unix:none.sock'], 1, /no server answers at unix:.*none\.sock/],
    ['a store of an unknown kind', ['get', 'stacks', '--store', 'redis:x'], 1, /expected one of memory:, sqlite:PATH/],
    ['a store that is not offered yet', ['get', 'stacks', '--store', 'etcd://localhost:2379/x'], 1, /not offered by this version/],
    ['an unknown command', ['gett'], 2, /Did you mean get/],
    ['an unknown option', ['get', 'stacks', '--nope'], 2, /unknown option/],
    ['a missing argument', ['get'], 2, /missing required argument/],
    [
      'a bad time',
      ['wait', 'x.y', 'a', '--for=ready', '--timeout', 'soon', '--store', 'memory:'],
      2,
      /--timeout: expected a duration such as 30s/,
    ],
    ['apply without files', ['apply'], 2, /name what to apply with -f/],
    [
      'a socket path that is too long',
      ['serve', '--store', 'memory:', '--listen', `unix:${'x'.repeat(120)}`],
      1,
      /at most 100 work everywhere/,
    ],
    ['a listening address for everybody', ['serve', '--store', 'memory:', '--listen', 'grpc://0.0.0.0:1234'], 1, /not a loopback address/],
    ['a module that is missing', ['serve', 'none.mjs', '--store', 'memory:'], 1, /the module none\.mjs cannot be loaded/],
  ])('%s', async (_name, args, code, message) => {
    const result = await place.run(args as string[]);
    expect(result.stderr).toMatch(message as RegExp);
    expect(result.code).toBe(code);
    expect(result.stdout).toBe('');
  });

  test('help of every command has examples', async () => {
    const { stdout, code } = await place.run(['--help']);
    expect(code).toBe(0);
    const commands = [...stdout.matchAll(/^ {2}([a-z-]+) /gm)].map((match) => match[1] as string);
    expect(commands).toContain('apply');
    for (const command of commands) expect((await place.run([command, '--help'])).stdout).toMatch(/Examples:\n {2}steadystate /);
  });
});

describe('bad files', () => {
  let place: Workplace;
  let serve: Background;
  beforeAll(async () => {
    place = await Workplace.make();
    serve = place.start(['up', await place.write('small.yaml', smallStack)]);
    await serve.shows('ready: small');
  });
  afterAll(() => place[Symbol.asyncDispose]());

  const apply = async (text: string) => {
    await place.write('bad.yaml', text);
    return place.run(['apply', '-f', 'bad.yaml']);
  };

  test.each([
    [
      'an unknown field of a service',
      smallStack.replace('command: [node, server.mjs]', 'comand: [node, server.mjs]'),
      /bad\.yaml:7:\d+: Stacks\.host\.steadystate\.dev\/default\/small: spec\.services\.web.*comand/s,
    ],
    ['a cycle', smallStack.replace('files:', 'dependsOn: [idle]\n      files:'), /spec\.services\.\w+\.dependsOn.*(web|idle)/s],
    ['a dependency that is not there', smallStack.replace('[web]', '[wep]'), /wep/],
    ['a top-level field', 'metadata: { type: stack, id: a }\nspec: {}\nkind: x\n', /bad\.yaml:3:1: kind: unknown field/],
    ['a metadata field', 'metadata:\n  type: stack\n  id: a\n  name: x\nspec: {}\n', /bad\.yaml:4:3: metadata\.name: unknown field/],
    [
      'an id that is a number',
      'metadata: { type: stack, id: 7 }\nspec: {}\n',
      /bad\.yaml:1:\d+: metadata\.id: expected text, found number: write it in quotes/,
    ],
    [
      'a label that is a number',
      'metadata: { type: stack, id: a, labels: { x: 1 } }\nspec: {}\n',
      /bad\.yaml:1:\d+: metadata\.labels\.x: expected text, found a number/,
    ],
    [
      'an unknown type',
      'metadata: { type: stak, id: a }\nspec: {}\n',
      /bad\.yaml:1:\d+: metadata\.type: unknown type stak; known are .*stack/,
    ],
    ['no spec', 'metadata: { type: stack, id: a }\n', /bad\.yaml:1:1: needs a spec/],
    ['one resource twice', `${smallStack}---${smallStack}`, /stands here twice/],
    ['duplicate keys', 'metadata: { type: stack, id: a }\nspec: {}\nspec: {}\n', /bad\.yaml:3:1: spec: this key stands here twice/],
    ['broken YAML', 'metadata: [', /bad\.yaml:1:/],
  ])('%s: told with its place, nothing is written', async (_name, text, message) => {
    const before = (await place.run(['get', 'stacks', '-o', 'jsonpath={.items[*].metadata.version}'])).stdout;
    const result = await apply(text as string);
    expect(result.stderr).toMatch(message as RegExp);
    expect(result.code).toBe(1);
    expect((await place.run(['get', 'stacks', '-o', 'jsonpath={.items[*].metadata.version}'])).stdout).toBe(before);
  });

  test('a URL, an empty folder, a missing file', async () => {
    expect((await place.run(['apply', '-f', 'https://example.com/x.yaml'])).code).toBe(2);
    expect((await place.run(['apply', '-f', 'none.yaml'])).code).toBe(3);
    expect((await place.run(['apply', '-f', '-'], { input: '' })).code).toBe(2);
  });

  test('a stale version is a conflict, the present one is taken', async () => {
    const version = (await place.run(['get', 'stack', 'small', '-o', 'jsonpath={.metadata.version}'])).stdout;
    expect((await apply(smallStack.replace('id: small', 'id: small, version: "1"'))).code).toBe(4);
    expect((await apply(smallStack.replace('id: small', `id: small, version: "${version}"`))).code).toBe(0);
  });

  test('labels and annotations that an apply had set go when they are no longer set; others stay', async () => {
    await apply(smallStack.replace('id: small', 'id: small, labels: { mine: "1", both: "1" }'));
    await apply(smallStack.replace('id: small', 'id: small, labels: { both: "2" }'));
    const { metadata } = JSON.parse((await place.run(['get', 'stack', 'small', '-o', 'json'])).stdout) as {
      metadata: { labels: Record<string, string> };
    };
    expect(metadata.labels).toEqual({ both: '2' });
  });

  test('escapes in names are shown, not obeyed', async () => {
    const { stderr } = await place.run(['get', 'stack', 'a\u001b[31mred']);
    expect(stderr).not.toContain('\u001b');
  });

  test('a store in use names its holder', async () => {
    const result = await place.run(['get', 'stacks', '--store', 'sqlite:.steadystate/state.db']);
    expect(result.code).toBe(1);
    expect(result.stderr).toContain(`process ${serve.pid}`);
  });
});
