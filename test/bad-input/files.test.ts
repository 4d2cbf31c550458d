import { execFile } from 'node:child_process';
import { mkdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { Readable } from 'node:stream';
import { promisify } from 'node:util';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { readText } from '../../src/cli/read-text.ts';
import { program, Workplace } from '../cli/harness.ts';
import type { InProcessResult } from '../cli/in-process.ts';
import { runInProcess } from '../cli/in-process.ts';
import { aliasBomb, expectUntouched, mergeBomb } from './untouched.ts';

let place: Workplace;

beforeAll(async () => {
  place = await Workplace.make();
  await place.start(['serve', '--store', 'memory:']).shows('serving');
});
afterAll(() => place[Symbol.asyncDispose]());
afterEach(expectUntouched);

const run = (args: readonly string[], input?: string): Promise<InProcessResult> =>
  runInProcess(place.folder, args, input === undefined ? {} : { input });

const head = (more = ''): string => `metadata: { type: Things.example.dev, id: bad${more} }\n`;
const good = `${head().replace('bad', 'good')}spec: {}\n`;
const inSpec = (spec: string): string => `${head()}spec:\n  ${spec.replaceAll('\n', '\n  ')}\n`;

/** Documents that must not come through, and what is said after the name of the file. */
const bad: readonly (readonly [string, string | Buffer, RegExp])[] = [
  ['row 1: an alias bomb', inSpec(aliasBomb(9)), /:\d+:\d+: spec\.b\d.*: more than 200000 nodes, aliases included/],
  ['row 1: an alias bomb in the metadata', `metadata:\n  labels: ${'{a: &a [x]}'}\n  x: &x [${'*x,'.repeat(9)}]\nspec: {}\n`, /:\d+:\d+: /],
  ['row 2: merge keys', inSpec('a: &a {b: 1}\nc: {<<: *a}'), /:\d+:\d+: spec\.c: merge keys \(<<\) are not read; write the fields out/],
  ['row 2: merge keys of merge keys', inSpec(mergeBomb(9)), /:\d+:\d+: spec\.m1: merge keys/],
  ['row 3: flow nested deep', `${head()}spec: ${'['.repeat(100_000)}`, /:2:\d+: nested deeper than 100 levels/],
  [
    'row 3: JSON nested deep',
    `{"metadata": {}, "spec": ${'{"a":'.repeat(50_000)}1${'}'.repeat(50_001)}`,
    /:1:\d+: nested deeper than 100 levels/,
  ],
  ['row 3: blocks nested deep', inSpec('- '.repeat(100_000)), /:3:\d+: nested deeper/],
  [
    'row 3: a staircase',
    `${head()}spec:\n${Array.from({ length: 3_000 }, (_, level) => `${' '.repeat(level + 1)}a:`).join('\n')}\n`,
    /:\d+:\d+: nested deeper/,
  ],
  ['row 3: one level too many', `${head()}spec: ${'['.repeat(102)}${']'.repeat(102)}\n`, /nested deeper than 100 levels/],
  [
    'row 4: longer than any text that is read',
    `${head()}spec: {}\n${'# a long comment\n'.repeat(1_000_000)}`,
    / is longer than 16777216 bytes|:1:1: longer than 16777216 bytes/,
  ],
  ['row 6: __proto__ in a spec', inSpec('__proto__: { polluted: 1 }'), /:3:3: spec\.__proto__: this key is not allowed/],
  [
    'row 6: __proto__ in JSON',
    '{"metadata": {"type": "Things.example.dev", "id": "bad"}, "spec": {"__proto__": {"polluted": 1}}}',
    /:1:\d+: spec\.__proto__/,
  ],
  ['row 6: __proto__ at the top', `__proto__: { polluted: 1 }\n${head()}spec: {}\n`, /:1:1: __proto__: this key is not allowed/],
  [
    'row 6: __proto__ as a label',
    `${head(', labels: { __proto__: x }')}spec: {}\n`,
    /:1:\d+: metadata\.labels\.__proto__: this key is not allowed/,
  ],
  ['row 6: constructor as a field', `constructor: { polluted: 1 }\n${head()}spec: {}\n`, /:1:1: constructor: unknown field/],
  ['row 6: prototype in the metadata', `${head(', prototype: x')}spec: {}\n`, /:1:\d+: metadata\.prototype: unknown field/],
  ['row 7: duplicate keys', inSpec('a: 1\nb: 2\na: 3'), /:5:3: spec\.a: this key stands here twice/],
  ['row 7: duplicate keys by escapes', inSpec('{"a": 1, "\\u0061": 2}'), /spec\.a: this key stands here twice/],
  ['row 7: 1e400', inSpec('a: 1e400'), /:3:6: spec\.a: 1e400 is not a finite number/],
  ['row 7: .inf', inSpec('a: .inf'), /:3:6: spec\.a: \.inf is not a finite number/],
  ['row 7: .nan', inSpec('a: [.NaN]'), /spec\.a\[0\]: \.NaN is not a finite number/],
  ['row 7: a float that would be rounded', inSpec('a: 9007199254740993.0'), /spec\.a: 9007199254740993\.0 is a whole number beyond 2\^53/],
  ['row 7: half a surrogate pair', inSpec('a: "\\ud800"'), /:3:6: .*[Uu]nicode|surrogate/],
  ['row 7: half a surrogate pair as a key', inSpec('"\\udc00": 1'), /:3:3: .*[Uu]nicode|surrogate/],
  [
    'row 7: bytes that are not UTF-8',
    Buffer.concat([Buffer.from(`${head()}spec: { a: "`), Buffer.from([0xff, 0xfe]), Buffer.from('" }\n')]),
    / is not UTF-8 text/,
  ],
  ['row 7: UTF-16', Buffer.from(`\ufeff${good}`, 'utf16le'), / is not UTF-8 text/],
  [
    'row 8: an id with NUL',
    'metadata: { type: Things.example.dev, id: "a\\0b" }\nspec: {}\n',
    /:1:\d+: metadata\.id: must not hold control characters, found "a\\+x00b"/,
  ],
  [
    'row 8: an id with an escape',
    'metadata: { type: Things.example.dev, id: "\\e[2J" }\nspec: {}\n',
    /metadata\.id: must not hold control characters, found "\\+x1b\[2J"/,
  ],
  [
    'row 8: a namespace with a newline',
    `${head(', namespace: "a\\nb"')}spec: {}\n`,
    /metadata\.namespace: must not hold control characters, found "a\\+nb"/,
  ],
  [
    'row 8: an id of 1025 bytes',
    `metadata: { type: Things.example.dev, id: ${'x'.repeat(1025)} }\nspec: {}\n`,
    /metadata\.id: must be at most 1024 UTF-8 bytes, found 1025/,
  ],
  [
    'row 8: an empty id',
    'metadata: { type: Things.example.dev, id: "" }\nspec: {}\n',
    /metadata\.id: expected 1 to 1024 bytes, found none/,
  ],
  [
    'row 8: an id that is a number',
    'metadata: { type: Things.example.dev, id: 7 }\nspec: {}\n',
    /metadata\.id: expected text, found number: write it in quotes/,
  ],
  [
    'row 8: an id that is a boolean',
    'metadata: { type: Things.example.dev, id: true }\nspec: {}\n',
    /metadata\.id: expected text, found boolean: write it in quotes/,
  ],
  ['row 8: an id that is a list', 'metadata: { type: Things.example.dev, id: [a] }\nspec: {}\n', /metadata\.id: expected text/],
  ['row 8: a label that is a number', `${head(', labels: { a: 1 }')}spec: {}\n`, /metadata\.labels\.a: expected text, found a number/],
  [
    'row 8: a label that is a boolean',
    `${head(', labels: { a: yes, b: true }')}spec: {}\n`,
    /metadata\.labels\.b: expected text, found a boolean/,
  ],
  ['row 8: an annotation that is a map', `${head(', annotations: { a: {} }')}spec: {}\n`, /metadata\.annotations\.a: expected text/],
  ['row 8: finalizers that are no list', `${head(', finalizers: x')}spec: {}\n`, /metadata\.finalizers/],
  [
    'row 16: a version that is a number',
    `${head(', version: 7')}spec: {}\n`,
    /metadata\.version: expected text, found number: write it in quotes/,
  ],
  ['row 24: a tag that nobody knows', inSpec('a: !!js/function "x"'), /:3:\d+: .*js\/function/],
  ['row 24: a tag of another language', inSpec('a: !!python/object/apply:os.system ["id"]'), /:3:\d+: .*python/],
  ['row 24: a local tag', inSpec('a: !secret x'), /:3:\d+: .*!secret/],
  ['row 24: binary that is none', inSpec('a: !!binary "***"'), /:3:\d+: spec\.a: !!binary needs base64 text/],
  ['a timestamp tag', inSpec('a: !!timestamp 2026-01-01'), /timestamp/],
  ['no resource', '- a\n- b\n', /:1:1: expected a resource: a map of metadata and spec/],
  ['text alone', 'just words\n', /:1:1: expected a resource/],
];

async function expectNothing(): Promise<void> {
  expect((await run(['get', 'Things.example.dev', '-A', '-o', 'name'])).stdout).toBe('');
}

describe.each(bad)('%s', (_name, content, message) => {
  const expectRefused = async (result: InProcessResult, name: string): Promise<void> => {
    expect(result).toMatchObject({ code: 1, stdout: '', open: {} });
    expect(result.stderr.startsWith(name) || result.stderr.includes(`${name}:`) || result.stderr.includes(`${name} `)).toBe(true);
    expect(result.stderr.slice(result.stderr.indexOf(name) + name.length)).toMatch(message);
    // A short word, whatever was in the file: never what was read, never a stack.
    expect(result.stderr.length).toBeLessThan(2_000);
    expect(result.stderr).not.toMatch(/^\s+at |call stack/m);
    await expectNothing();
  };

  test('in a file, for every command that reads one', async () => {
    writeFileSync(place.path('bad.yaml'), content);
    for (const command of ['apply', 'diff', 'plan', 'delete']) await expectRefused(await run([command, '-f', 'bad.yaml']), 'bad.yaml');
  });

  test('in a folder, beside one that is right', async () => {
    mkdirSync(place.path('bundle'), { recursive: true });
    writeFileSync(place.path('bundle/a.yaml'), good);
    writeFileSync(place.path('bundle/b.yaml'), content);
    await expectRefused(await run(['apply', '-f', 'bundle']), 'bundle/b.yaml');
    rmSync(place.path('bundle'), { recursive: true });
  });

  test('after one that is right, in one file', async () => {
    if (typeof content !== 'string') return;
    writeFileSync(place.path('both.yaml'), `${good}---\n${content}`);
    const { code, stdout } = await run(['apply', '-f', 'both.yaml']);
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
    await expectNothing();
  });

  test('from standard input', async () => {
    if (typeof content === 'string') return expectRefused(await run(['apply', '-f', '-'], content), '<stdin>');
    await expect(readText(Readable.from([content]), '<stdin>')).rejects.toMatchObject({
      code: 'Invalid',
      message: '<stdin> is not UTF-8 text',
    });
  });
});

test('row 4: standard input that never ends is left', async () => {
  let given = 0;
  const endless = async function* (): AsyncGenerator<Uint8Array> {
    for (;;) {
      given += 65_536;
      yield Buffer.alloc(65_536, '# ');
    }
  };
  await expect(readText(endless(), '<stdin>')).rejects.toThrow('<stdin> is longer than 16777216 bytes');
  expect(given).toBeLessThan(17 * 1024 * 1024);
  // The same from a device.
  expect(await run(['apply', '-f', '/dev/zero'])).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('/dev/zero is longer than 16777216 bytes'),
  });
});

describe('what can be comes through as it is', () => {
  test.each<[string, string, unknown]>([
    [
      'constructor and prototype',
      '{ constructor: { prototype: { polluted: "1" } }, toString: "x" }',
      { constructor: { prototype: { polluted: '1' } }, toString: 'x' },
    ],
    ['an integer beyond 2^53', '{ a: 9007199254740993 }', '9007199254740993'],
    ['a level below the last', `{ a: ${'['.repeat(99)}${']'.repeat(99)} }`, undefined],
    ['text that looks deep', `{ a: "${'[{'.repeat(200)}" }`, { a: '[{'.repeat(200) }],
    ['keys of every plane', '{ "\u{1F642} \\u2028": "\\0" }', { '\u{1F642} \u2028': '\0' }],
  ])('%s', async (_name, spec, expected) => {
    expect(await run(['apply', '-f', '-'], `${head()}spec: ${spec}\n`)).toMatchObject({ code: 0, stderr: '' });
    const shown = (await run(['get', 'Things.example.dev', 'bad', '-o', 'json'])).stdout;
    if (typeof expected === 'string') expect(shown).toContain(expected);
    else if (expected !== undefined) expect((JSON.parse(shown) as { spec: unknown }).spec).toEqual(expected);
    for (const format of ['json', 'yaml']) {
      const again = (await run(['get', 'Things.example.dev', 'bad', '-o', format])).stdout;
      expect(await run(['apply', '-f', '-'], again)).toMatchObject({ code: 0, stdout: expect.stringContaining('unchanged') });
    }
    expect((await run(['delete', 'Things.example.dev', 'bad', '--wait'])).code).toBe(0);
  });

  test.each(['../../etc/passwd', '%2e%2e%2fetc', 'ａdmin', 'аdmin', 'var/run', 'toString', '..', '-rf'])(
    'row 8: %s is an inert id',
    async (id) => {
      const text = JSON.stringify({ metadata: { type: 'Things.example.dev', id }, spec: { a: 1 } });
      expect(await run(['apply', '-f', '-'], text)).toMatchObject({ code: 0 });
      const { items } = JSON.parse((await run(['get', 'Things.example.dev', '-o', 'json'])).stdout) as {
        items: { metadata: { id: string } }[];
      };
      expect(items.map(({ metadata }) => metadata.id)).toEqual([id]);
      expect((await run(['delete', '-f', '-', '--wait'], text)).code).toBe(0);
      await expectNothing();
    },
  );

  test('row 16: what is read-only is ignored: nobody becomes an owner, an incarnation or a time by writing it down', async () => {
    const forged = head(', uid: "777", owner: root, phase: tearingDown, created: "1970-01-01T00:00:00Z", updated: "1970-01-01T00:00:00Z"');
    expect(await run(['apply', '-f', '-'], `${forged}spec: {}\n`)).toMatchObject({ code: 0 });
    const { metadata } = JSON.parse((await run(['get', 'Things.example.dev', 'bad', '-o', 'json'])).stdout) as {
      metadata: Record<string, string>;
    };
    expect(metadata.uid).not.toBe('777');
    expect(metadata.phase ?? 'running').toBe('running');
    expect(metadata.owner ?? '').toBe('');
    expect(metadata.created?.startsWith('1970')).toBe(false);
    // A version is a precondition, and so is one that was made up.
    expect(await run(['apply', '-f', '-'], `${head(', version: "18446744073709551615"')}spec: { a: 1 }\n`)).toMatchObject({ code: 4 });
    expect((await run(['delete', 'Things.example.dev', 'bad', '--wait'])).code).toBe(0);
  });
});

describe('row 24: bundles', () => {
  const bundle = (): string => place.path('bundle');

  test('links, folders and pipes in a folder are refused, even when what they lead to is right', async () => {
    writeFileSync(place.path('good.yaml'), good);
    const make: Readonly<Record<string, () => void>> = {
      'a link to a file': () => symlinkSync(place.path('good.yaml'), `${bundle()}/x.yaml`),
      'a link out of the folder': () => symlinkSync('../good.yaml', `${bundle()}/x.yaml`),
      'a link to nowhere': () => symlinkSync('nowhere', `${bundle()}/x.yaml`),
      'a link to a device': () => symlinkSync('/dev/zero', `${bundle()}/x.yaml`),
      'a folder': () => mkdirSync(`${bundle()}/x.yaml`),
    };
    for (const [what, create] of Object.entries(make)) {
      mkdirSync(bundle());
      writeFileSync(`${bundle()}/a.yaml`, good);
      create();
      for (const command of ['apply', 'diff', 'plan', 'delete']) {
        const result = await run([command, '-f', 'bundle']);
        expect(result, what).toMatchObject({ code: 1, stdout: '' });
        expect(result.stderr, what).toContain('bundle/x.yaml is not a plain file; name what it points to');
      }
      rmSync(bundle(), { recursive: true });
    }
    await expectNothing();
  });

  test('what is named by itself is meant: a link, a path with .., and a pipe', async () => {
    writeFileSync(place.path('good.yaml'), good);
    mkdirSync(bundle());
    symlinkSync('../good.yaml', `${bundle()}/link.yaml`);
    symlinkSync('bundle', place.path('bundle-link'));
    mkdirSync(place.path('plain'));
    writeFileSync(place.path('plain/good.yaml'), good);
    symlinkSync('plain', place.path('plain-link'));
    symlinkSync('nowhere', place.path('lost.yaml'));
    expect(await run(['diff', '-f', 'bundle-link'])).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('bundle-link/link.yaml is not a plain file'),
    });
    expect(await run(['diff', '-f', 'lost.yaml'])).toMatchObject({
      code: 3,
      stderr: expect.stringContaining('lost.yaml is a link that leads nowhere'),
    });
    for (const path of ['bundle/link.yaml', 'bundle/../good.yaml', place.path('good.yaml'), 'plain', 'plain-link', 'plain-link/good.yaml'])
      expect(await run(['diff', '-f', path]), path).toMatchObject({ code: 6 });
    const piped = await promisify(execFile)('bash', ['-c', `${process.execPath} ${program} apply -f <(cat good.yaml)`], {
      cwd: place.folder,
    });
    expect(piped.stdout).toBe('things/good created\n');
    expect((await run(['delete', 'Things.example.dev', 'good', '--wait'])).code).toBe(0);
    rmSync(bundle(), { recursive: true });
  });

  test.each(['https://example.com/x.yaml', 'HTTP://example.com/x.yaml', 'file:///etc/passwd', 'ftp://x/y', 'git+ssh://x/y'])(
    '%s is a URL: nothing is fetched',
    async (url) => {
      for (const command of ['apply', 'diff', 'plan', 'delete'])
        expect(await run([command, '-f', url])).toMatchObject({
          code: 2,
          stdout: '',
          stderr: expect.stringContaining(`${url} is a URL; download it first`),
        });
    },
  );

  test('files that are no resources are left alone, and hidden ones too', async () => {
    mkdirSync(bundle());
    for (const name of ['README.md', 'x.yaml.bak', 'x.sh']) writeFileSync(`${bundle()}/${name}`, 'not: [a resource');
    expect(await run(['apply', '-f', 'bundle'])).toMatchObject({
      code: 3,
      stderr: expect.stringContaining('holds no .yaml, .yml or .json file'),
    });
    rmSync(bundle(), { recursive: true });
  });
});

describe('the command line itself', () => {
  test.each<[string, readonly string[], number, RegExp]>([
    [
      'row 3: nested ranges',
      ['get', 'Things.example.dev', '-o', `jsonpath=${'{range .items[*]}'.repeat(20_000)}`],
      2,
      /JSONPath .*nested deeper than 64 levels/,
    ],
    [
      'row 3: nested filters',
      ['get', 'Things.example.dev', '-o', `jsonpath={.a${'[?(@.a'.repeat(20_000)}`],
      2,
      /JSONPath .*nested deeper than 64 levels/,
    ],
    ['row 3: a nested path to sort by', ['get', 'Things.example.dev', '--sort-by', `{.a${'[?(@.a'.repeat(20_000)}`], 2, /nested deeper/],
    ['row 6: a label __proto__', ['label', 'Things.example.dev', 'bad', '__proto__=x'], 1, /__proto__/],
    ['row 8: an id of 1025 bytes', ['get', 'Things.example.dev', 'x'.repeat(1025)], 2, /must be at most 1024 UTF-8 bytes/],
    ['row 8: a namespace of 1025 bytes', ['get', 'Things.example.dev', '-n', 'x'.repeat(1025)], 2, /-n: must be at most 1024 UTF-8 bytes/],
    ['row 8: a type with NUL', ['get', 'Things\u0000.example.dev'], 1, /control characters/],
  ])('%s', async (_name, args, code, message) => {
    if (args[0] === 'label') await run(['apply', '-f', '-'], `${head()}spec: {}\n`);
    const result = await run(args);
    expect(result.stderr).toMatch(message);
    expect(result).toMatchObject({ code, stdout: '', open: {} });
    expect(result.stderr.length).toBeLessThan(5_000);
    if (args[0] === 'label') await run(['delete', 'Things.example.dev', 'bad', '--wait']);
  });

  test.each(['{.constructor}', '{.__proto__}', '{.spec.constructor.constructor}', '{.metadata.toString}'])(
    'row 6: the path %s finds nothing',
    async (path) => {
      await run(['apply', '-f', '-'], `${head()}spec: {}\n`);
      expect(await run(['get', 'Things.example.dev', 'bad', '-o', `jsonpath=${path}`])).toMatchObject({ code: 0, stdout: '' });
      await run(['delete', 'Things.example.dev', 'bad', '--wait']);
    },
  );

  test('row 10: a label query has no expressions to be expensive, and a long one is read', async () => {
    const terms = Array.from({ length: 20_000 }, (_, index) => `k${index} in (a,b)`).join(',');
    const start = performance.now();
    expect((await run(['get', 'Things.example.dev', '-l', terms])).code).toBe(0);
    expect(performance.now() - start).toBeLessThan(15_000);
  });
});
