import { existsSync } from 'node:fs';
import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { Workplace } from '../cli/harness.ts';

const root = new URL('../../', import.meta.url);

test('the first operator: the file of the page runs, and what the page says to type does what it says', async () => {
  const page = await readFile(new URL('docs/first-operator.md', root), 'utf8');
  const code = [...page.matchAll(/```js\n([\s\S]*?)```/g)].map((match) => match[1]).join('\n');
  const yaml = /```yaml\n([\s\S]*?)```/.exec(page)?.[1] as string;
  // Inside the package, so that `steadystate` means this one.
  await mkdir(new URL('.cache/', root), { recursive: true });
  await using place = await Workplace.make(fileURLToPath(new URL('.cache/', root)));
  await place.write('operator.mjs', code);
  await place.write('board.yaml', yaml);
  const commands = [...page.matchAll(/^npx steadystate (.*?)(?: +#.*)?$/gm)].map((match) => (match[1] as string).split(' '));
  expect(commands.map(([name]) => name)).toEqual(['serve', 'plan', 'apply', 'get', 'why', 'events', 'delete']);

  const serve = place.start(commands[0] as string[]);
  await serve.shows('serving');
  const output: Record<string, string> = {};
  for (const args of commands.slice(1, -1)) {
    const { code: exitCode, stdout, stderr } = await place.run(args);
    expect({ args, exitCode, stderr: exitCode === 0 ? '' : stderr }).toEqual({ args, exitCode: args[0] === 'plan' ? 6 : 0, stderr: '' });
    output[args[0] as string] = stdout;
  }
  expect(output.plan).toMatch(/boards\/home would be created[\s\S]*\+ notes\/home\/milk/);
  expect(output.apply).toBe('boards/home created\nhome is ready\n');
  expect(output.get).toMatch(/^ID +FILE +WRITTEN +AGE\nhome\/cat +notes\/home%2Fcat\.txt +1 /);
  expect(output.why).toBe('home is ready\n');
  expect(output.events).toContain('created Notes/home/cat');
  expect(await readFile(place.path('notes/home%2Fcat.txt'), 'utf8')).toBe('Back by six.');

  // Drift is put right and counted.
  await writeFile(place.path('notes/home%2Fcat.txt'), 'scribble');
  expect((await place.run(['wait', 'note', 'home/cat', '--for=jsonpath={.status.written}=2'])).code).toBe(0);
  expect(await readFile(place.path('notes/home%2Fcat.txt'), 'utf8')).toBe('Back by six.');

  // A note that is no longer declared goes with its file.
  await place.write('board.yaml', yaml.replace(/^ +milk.*\n/m, ''));
  expect((await place.run(['apply', '-f', 'board.yaml', '--wait'])).code).toBe(0);
  expect((await place.run(['wait', 'note', 'home/milk', '--for=destroyed'])).code).toBe(0);
  expect(await readdir(place.path('notes'))).toEqual(['home%2Fcat.txt']);

  // Killed and started again.
  serve.kill('SIGKILL');
  await serve.result;
  await place.start(commands[0] as string[]).shows('serving');
  const deleted = await place.run(commands.at(-1) as string[]);
  expect(deleted).toMatchObject({ code: 0, stdout: 'boards/home is being deleted\nboards/home deleted\n' });
  expect(await readdir(place.path('notes'))).toEqual([]);
  expect((await place.run(['get', 'notestatuses'])).stdout).toBe('');
  expect(existsSync(place.path('.steadystate/state.db'))).toBe(true);
}, 90_000);
