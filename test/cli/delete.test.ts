import { existsSync } from 'node:fs';
import { readdir } from 'node:fs/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { smallStack, Workplace } from './harness.ts';

let place: Workplace;

/** Its service writes what nobody declared. */
const writer = (id: string, names: string): string => `
metadata: { type: stack, id: ${id} }
spec:
  directory: ./${id}-data
  services:
    writer:
      command: [node, -e, "const fs = require('node:fs'); fs.mkdirSync('kept/deep', { recursive: true }); for (const name of ${names}) fs.writeFileSync('kept/' + name, ''); console.log('written'); setInterval(() => {}, 1000)"]
      files: { declared.txt: "goes" }
      ready: { log: written }
`;

beforeAll(async () => {
  place = await Workplace.make();
  await place.write('small.yaml', smallStack);
  await place.start(['up', 'small.yaml']).shows('ready: small');
});

afterAll(() => place[Symbol.asyncDispose]());

test('delete --wait of a stack: what was declared is gone, what its services wrote stays and is listed', async () => {
  expect((await place.run(['apply', '-f', '-', '--wait'], { input: writer('one', "['b.txt', 'a\\u202e.txt']") })).code).toBe(0);
  const deleted = await place.run(['delete', 'stack', 'one', '--wait']);
  expect(deleted.code).toBe(0);
  expect(deleted.stdout).toBe(
    `stacks/one is being deleted\nstacks/one deleted\nleft in ${place.path('one-data')}, since it was not declared:\n  kept/\n  kept/a\\u202e.txt\n  kept/b.txt\n  kept/deep/\n`,
  );
  expect(await readdir(place.path('one-data'))).toEqual(['kept']);
});

test('delete -f --wait likewise, each with its own; a long list is cut', async () => {
  const names = JSON.stringify(Array.from({ length: 60 }, (_, index) => `n${String(index).padStart(2, '0')}`)).replaceAll('"', "'");
  await place.write('two.yaml', `${writer('two', names)}---${writer('three', '[]')}`);
  expect((await place.run(['apply', '-f', 'two.yaml', '--wait'])).code).toBe(0);
  const { code, stdout } = await place.run(['delete', '-f', 'two.yaml', '--wait']);
  expect(code).toBe(0);
  expect(stdout).toMatch(
    /stacks\/three deleted\nleft in .*three-data.*:\n {2}kept\/\n {2}kept\/deep\/\nstacks\/two deleted\nleft in .*two-data/,
  );
  expect(stdout).toMatch(/ {2}kept\/n47\n {2}… and 12 more\n$/);
});

test('what other stacks declare in the same folder is not told as left', async () => {
  const shared = (id: string, names: string): string =>
    writer(id, names).replaceAll(`./${id}-data`, './shared').replaceAll('declared.txt', `${id}-files/a.txt`);
  await place.write('shared.yaml', `${shared('four', "['x']")}---${shared('five', '[]')}`);
  expect((await place.run(['apply', '-f', 'shared.yaml', '--wait'])).code).toBe(0);
  const { code, stdout } = await place.run(['delete', 'stack', 'four', '--wait']);
  expect(code).toBe(0);
  expect(stdout).toMatch(/deleted\nleft in .*shared, since it was not declared:\n {2}kept\/\n {2}kept\/deep\/\n {2}kept\/x\n$/);
  expect((await place.run(['delete', 'stack', 'five', '--wait'])).stdout).toContain('  kept/x\n');
});

test('nothing left: nothing is said; several that are held are all told, within one time', async () => {
  const thing = (id: string): string => `metadata: { type: things.example.dev, id: ${id}, finalizers: [hold] }\nspec: {}\n`;
  await place.write('things.yaml', `${thing('a')}---\n${thing('b')}`);
  expect((await place.run(['apply', '-f', 'things.yaml'])).code).toBe(0);
  const held = await place.run(['delete', '-f', 'things.yaml', '--wait', '--timeout', '200ms']);
  expect(held).toMatchObject({ code: 5, stdout: 'things/b is being deleted\nthings/a is being deleted\n' });
  expect(held.stderr).toMatch(
    /b: waiting for hold\n.*default\/b is still there; finalizers: hold; ask: steadystate why[\s\S]*default\/a is still there/,
  );
  const deleted = await place.run(['delete', 'stack', 'small', '--wait']);
  expect(deleted).toMatchObject({ code: 0, stdout: 'stacks/small is being deleted\nstacks/small deleted\n' });
  expect(existsSync(place.path('data'))).toBe(false);
});
