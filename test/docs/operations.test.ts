import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { Workplace } from '../cli/harness.ts';

const page = await readFile(fileURLToPath(new URL('../../docs/operations.md', import.meta.url)), 'utf8');
const blocks = [...page.matchAll(/<!-- shell: (served|closed) -->\n```sh\n([\s\S]*?)```/g)].map(([, mode = '', text = '']) => ({
  mode,
  commands: text.trim().split('\n'),
}));

test('there are examples of both kinds', () => {
  expect(new Set(blocks.map(({ mode }) => mode))).toEqual(new Set(['served', 'closed']));
});

test.each(blocks)('$mode: $commands', async ({ mode, commands }) => {
  await using place = await Workplace.make();
  await place.write('notes.yaml', 'metadata: { namespace: default, type: Notes.example.dev, id: a }\nspec: 1\n');
  const server = place.start(['serve']);
  await server.shows('serving');
  expect(await place.run(['apply', '-f', 'notes.yaml'])).toMatchObject({ code: 0 });
  if (mode === 'closed') {
    expect(await place.run(['store', 'backup', 'nightly.db'])).toMatchObject({ code: 0 });
    server.kill('SIGINT');
    await server.result;
  }
  for (const command of commands) {
    const [npx, program, ...args] = command.split(' ');
    expect([npx, program]).toEqual(['npx', 'steadystate']);
    expect([command, await place.run(args)]).toMatchObject([command, { code: 0, stderr: '' }]);
  }
});
