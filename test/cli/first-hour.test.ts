import { readFile } from 'node:fs/promises';
import { expect, test } from 'vitest';
import { Workplace } from './harness.ts';

test('the first hour: what docs/first-hour.md says to type works, with the file that it shows', async () => {
  const text = await readFile(new URL('../../docs/first-hour.md', import.meta.url), 'utf8');
  const yaml = /```yaml\n([\s\S]*?)```/.exec(text)?.[1] as string;
  await using place = await Workplace.make();
  await place.write('hello.yaml', yaml);
  await place.write('empty.yaml', 'metadata: { type: stack, id: shop }\nspec: { directory: ./shop-data, services: {} }\n');
  await place.start(['up', 'empty.yaml']).shows('to start over');
  const commands = [...text.matchAll(/^npx steadystate (.*?)(?: +#.*)?$/gm)].map((match) => (match[1] as string).split(' '));
  expect(commands.length).toBeGreaterThan(8);
  for (const args of commands.filter((each) => !each.includes('-w'))) {
    if (args[0] === 'diff') await place.write('hello.yaml', yaml.replace('hello\\n', 'goodbye\\n'));
    const result = await place.run(args);
    expect({ args, code: result.code, stderr: result.code === 0 ? '' : result.stderr }).toEqual({
      args,
      code: args[0] === 'diff' || args[0] === 'plan' ? 6 : 0,
      stderr: '',
    });
  }
  await place.write('hello.yaml', yaml.replace('command:', 'comand:'));
  expect((await place.run(['apply', '-f', 'hello.yaml'])).stderr).toMatch(/hello\.yaml:\d+:\d+: .*comand/);
}, 90_000);
