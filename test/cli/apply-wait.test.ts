import { afterAll, beforeAll, expect, test } from 'vitest';
import { smallStack, Workplace } from './harness.ts';
import { runInProcess } from './in-process.ts';

let place: Workplace;

beforeAll(async () => {
  place = await Workplace.make();
  await place.write('small.yaml', smallStack);
  await place.start(['up', 'small.yaml']).shows('ready: small');
});

afterAll(() => place[Symbol.asyncDispose]());

const another = (id: string): string => smallStack.replace('id: small', `id: ${id}`).replace('./data', `./${id}-data`);

test('not on a terminal: a line for each phase, child and reason, with the time that it took', async () => {
  const { code, stdout, stderr, open } = await runInProcess(place.folder, ['apply', '-f', '-', '--wait'], { input: another('lines') });
  expect({ code, stdout, open }).toEqual({ code: 0, stdout: 'stacks/lines created\nlines is ready\n', open: {} });
  const lines = stderr.trimEnd().split('\n');
  for (const line of lines) expect(line).toMatch(/^20\S+Z +\d+s stacks\/lines(?: phase \S+| \S+\/\S+)?: ./);
  const told = lines.map((line) => line.replace(/^\S+ +\d+s /, ''));
  for (const expected of [
    'stacks/lines phase Files: done',
    'stacks/lines phase Processes: done',
    'stacks/lines Processes/lines/web: ready',
    'stacks/lines Processes/lines/idle: ready',
    'stacks/lines: ready',
  ])
    expect(told.filter((line) => line === expected)).toHaveLength(1);
  expect(told.at(-1)).toBe('stacks/lines: ready');
});

test('on a terminal: one table that is drawn in place, then the outcome', async () => {
  const { code, stdout, stderr, open } = await runInProcess(place.folder, ['apply', '-f', '-', '--wait'], {
    input: another('drawn'),
    columns: 80,
  });
  expect({ code, stderr, open }).toEqual({ code: 0, stderr: '', open: {} });
  // biome-ignore lint/suspicious/noControlCharactersInRegex: escapes are what is looked for.
  const last = stdout.split(/\u001b\[\d+A\u001b\[J/).at(-1) as string;
  expect(last).toMatch(/^● drawn {3}✓ Dependencies {2}✓ Files {2}✓ Processes {2}✓ Check-Ready {2}✓ Complete {3}\d+s\n {2}KIND +NAME/);
  expect(last).toMatch(/Processes +drawn\/web +ready[\s\S]*\ndrawn is ready\n$/);
});

test('several: all are waited for at once; what is not ready in time is told with its reason', async () => {
  const input = `${smallStack}---\nmetadata: { type: stack, id: bad }\nspec:\n  directory: ./bad-data\n  services:\n    x: { command: [node, -e, 'setInterval(() => {}, 1000)'], ready: { log: never } }\n`;
  const result = await runInProcess(place.folder, ['apply', '-f', '-', '--wait', '--timeout', '8s'], { input });
  expect(result.code).toBe(5);
  expect(result.stdout).toBe('stacks/small unchanged\nstacks/bad created\nsmall is ready\n');
  // What waits says why, once it has waited for a second.
  expect(result.stderr).toMatch(/ [1-8]s stacks\/bad phase \S+: \w+/);
  expect(result.stderr).toMatch(/ [1-8]s stacks\/bad Processes\/bad\/x: \w+/);
  expect(result.stderr).not.toMatch(/ 0s \S+ (?:phase )?\S+: (?!ready|done)/);
  expect(result.stderr).toMatch(/^Stacks\.host\.steadystate\.dev\/default\/bad: timed out after 8s: /m);
}, 60_000);

test('what is unchanged and ready ends at once', async () => {
  expect(await runInProcess(place.folder, ['apply', '-f', 'small.yaml', '--wait'])).toMatchObject({
    code: 0,
    stdout: 'stacks/small unchanged\nsmall is ready\n',
  });
});
