import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Background } from './harness.ts';
import { smallStack, Workplace } from './harness.ts';

describe('without a store', () => {
  let place: Workplace;
  beforeAll(async () => {
    place = await Workplace.make();
  });
  afterAll(() => place[Symbol.asyncDispose]());

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
