import { afterAll, beforeAll, expect, test } from 'vitest';
import type { CliResult } from './harness.ts';
import { Workplace } from './harness.ts';

let place: Workplace;

const secret = (password: string): string => `metadata: { type: secret, id: db }\nspec: { user: root, password: ${password} }\n`;

beforeAll(async () => {
  place = await Workplace.make();
  await place.serveModule(`
export const definitions = [
  defineResource({ type: 'Secrets.example.dev', spec, sensitivity: 'sensitive', printColumns: [{ name: 'USER', jsonPath: '{.spec.user}' }] }),
];
`);
  await place.write('secret.yaml', secret('hunter-1'));
  expect((await place.run(['apply', '-f', 'secret.yaml'])).code).toBe(0);
});

afterAll(() => place[Symbol.asyncDispose]());

const hides = ({ stdout, stderr }: CliResult): void => {
  expect(stdout + stderr).not.toMatch(/hunter|root/);
};

test.each([
  [['get', 'secrets']],
  [['get', 'secrets', '-o', 'wide']],
  [['get', 'secret', 'db', '-o', 'yaml']],
  [['get', 'secret', 'db', '-o', 'json']],
  [['get', 'secrets', '-o', 'jsonpath={.items[*].spec.password}']],
  [['get', 'secrets', '--sort-by', '.spec.password']],
  [['describe', 'secret', 'db']],
  [['why', 'secret', 'db', '-o', 'yaml']],
  [['plan', '-f', 'secret.yaml']],
  [['plan', '-f', 'secret.yaml', '-o', 'yaml', '--store', 'memory:', '--module', 'module.mjs']],
])('%j shows no value', async (args) => {
  const result = await place.run(args);
  expect(result.stderr).toBe('');
  expect(result.stdout).toContain(args[0] === 'why' ? 'db' : args[0] === 'plan' && args.length === 3 ? 'stays as it is' : '***');
  hides(result);
});

test('a wait, an event and a kept table show no value, and none can be guessed by waiting for it', async () => {
  const waited = await place.run(['wait', 'secret', 'db', '--for=jsonpath={.spec.user}=root', '--timeout', '50ms']);
  expect(waited).toMatchObject({ code: 5, stderr: expect.stringContaining('{.spec.user} is *** (') });
  expect(waited.stdout + waited.stderr.replace('=root', '')).not.toMatch(/hunter|root/);
  hides(await place.run(['events', '-o', 'yaml']));
  const table = place.start(['get', 'secrets', '-w', '-o', 'wide']);
  await table.shows('***');
  await place.run(['annotate', 'secret', 'db', 'seen=1']);
  await table.shows(/\*\*\*[\s\S]*\*\*\*/);
  table.kill('SIGINT');
  hides(await table.result);
});

test('a watch shows no value, old or new', async () => {
  const watch = place.start(['watch', 'secrets', '-o', 'json']);
  await watch.shows('bootstrapped');
  await place.run(['apply', '-f', '-'], { input: secret('hunter-2') });
  await watch.shows('updated');
  watch.kill('SIGINT');
  const result = await watch.result;
  expect(result.stdout).toContain('***');
  hides(result);
});

test('a difference is seen, not its values', async () => {
  const result = await place.run(['diff', '-f', '-'], { input: secret('hunter-3') });
  expect(result.code).toBe(6);
  expect(result.stdout).toMatch(/- +password: ".*\*\*\*.*"\n\+ +password: ".*\*\*\*/);
  expect(result.stdout).not.toMatch(/[-+] +user/);
  hides(result);
});

test('the plan of a change shows no value either, though only the store knows that the type is sensitive', async () => {
  const result = await place.run(['plan', '-f', '-'], { input: secret('hunter-3') });
  expect(result).toMatchObject({ code: 6, stdout: expect.stringMatching(/- +password: ".*\*\*\*.*"\n +\+ +password: ".*\*\*\*/) });
  hides(result);
});

test('masks of one output tell what is equal; those of another run are others, so that trying finds nothing', async () => {
  const input = 'metadata: { type: secret, id: twice }\nspec: { one: hunter, two: hunter, three: hunter-3 }\n';
  expect((await place.run(['apply', '-f', '-'], { input })).code).toBe(0);
  const masks = async (): Promise<{ readonly one: string; readonly two: string; readonly three: string }> =>
    (JSON.parse((await place.run(['get', 'secret', 'twice', '-o', 'json'])).stdout) as { spec: never }).spec;
  const [first, second] = [await masks(), await masks()];
  expect(first.one).toBe(first.two);
  expect(first.one).not.toBe(first.three);
  expect(Object.values(second).filter((mask) => Object.values(first).includes(mask))).toEqual([]);
});

test('a mask is never written in place of a value', async () => {
  const { stdout } = await place.run(['get', 'secret', 'db', '-o', 'yaml']);
  expect(await place.run(['apply', '-f', '-'], { input: stdout })).toMatchObject({
    code: 1,
    stdout: '',
    stderr: expect.stringMatching(/<stdin>:\d+:\d+: spec\.\w+: this is what a look shows instead of a sensitive value/),
  });
  expect(await place.run(['edit', 'secret', 'db'], { variables: { EDITOR: 'true' } })).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('sensitive'),
  });
});
