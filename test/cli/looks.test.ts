import { afterAll, beforeAll, expect, test } from 'vitest';
import { Workplace } from './harness.ts';

let place: Workplace;

beforeAll(async () => {
  place = await Workplace.make();
  await place.serveModule(`
export const definitions = [
  defineResource({ type: 'Things.example.dev', aliases: ['th'], spec, printColumns: [{ name: 'N', jsonPath: '{.spec.n}' }] }),
  defineResource({ type: 'Things.other.dev', defaultNamespace: 'other', spec }),
];
`);
  const things = [
    ['default', 'a', 'web', '10'],
    ['default', '資源', 'web', '9'],
    ['default', `long-${'x'.repeat(120)}`, 'db', '9007199254740993'],
    ['other', 'far', 'db', '1'],
  ] as const;
  const input = things
    .map(
      ([namespace, id, app, n]) =>
        `metadata: { namespace: ${namespace}, type: Things.example.dev, id: ${id}, labels: { app: ${app} } }\nspec: { n: ${n} }\n`,
    )
    .join('---\n');
  expect((await place.run(['apply', '-f', '-'], { input })).code).toBe(0);
});

afterAll(() => place[Symbol.asyncDispose]());

test('a namespace, all of them, labels', async () => {
  const type = async (...args: readonly string[]): Promise<string> =>
    (await place.run(['get', 'Things.example.dev', ...args, '-o', 'jsonpath={range .items[*]}{.metadata.id} {end}'])).stdout.trim();
  expect(await type()).toBe(`a long-${'x'.repeat(120)} 資源`);
  expect(await type('-n', 'other')).toBe('far');
  expect((await type('-A')).split(' ')).toHaveLength(4);
  expect(await type('-l', 'app=web')).toBe('a 資源');
  expect(await type('-l', 'app in (db), app')).toBe(`long-${'x'.repeat(120)}`);
  expect(await type('-A', '-l', 'app!=web')).toBe(`long-${'x'.repeat(120)} far`);
  expect((await place.run(['get', 'th', '-l', '=='])).code).not.toBe(0);
});

test('sorted by a value: numbers as numbers, however large', async () => {
  const sorted = async (by: string): Promise<string> =>
    (await place.run(['get', 'th', '--sort-by', by, '-o', 'jsonpath={.items[*].spec.n}'])).stdout;
  expect(await sorted('.spec.n')).toBe('9 10 9007199254740993');
  expect(await sorted('{.metadata.id}')).toBe('10 9007199254740993 9');
  expect((await place.run(['get', 'th', '--sort-by', '{.spec['])).code).toBe(2);
});

test('names of types: an alias in any case; what several types answer to is refused with both', async () => {
  for (const name of ['th', 'TH', 'things.example.dev', 'THINGS.EXAMPLE.DEV'])
    expect((await place.run(['get', name, 'a', '-o', 'name'])).stdout).toBe('Things.example.dev/a\n');
  expect(await place.run(['get', 'thing'])).toMatchObject({
    code: 2,
    stderr: expect.stringMatching(/thing is ambiguous: Things\.example\.dev, Things\.other\.dev; write the whole type/),
  });
});

test('not a terminal: nothing is cut, no escapes, columns below each other', async () => {
  const { stdout } = await place.run(['get', 'th'], { variables: { FORCE_COLOR: '1' } });
  expect(stdout).toContain('x'.repeat(120));
  expect(stdout).not.toContain('\u001b');
  expect(stdout.split('\n')[0]).toMatch(/^ID {126}N +AGE$/);
});

test('several ids: those that are there are shown, the others are told', async () => {
  const result = await place.run(['get', 'th', 'a', 'none', '資源', '-o', 'name']);
  expect(result).toMatchObject({
    code: 3,
    stdout: 'Things.example.dev/a\nThings.example.dev/資源\n',
    stderr: expect.stringContaining('none does not exist'),
  });
  expect((await place.run(['get', 'th', 'a', '-A'])).code).toBe(2);
  expect((await place.run(['get', 'th', 'a', '-l', 'x'])).code).toBe(2);
});
