import { expect, test } from 'vitest';
import { Workplace } from './harness.ts';

test('a finalizer is released in a store that nobody serves: on record there, found by the next look', async () => {
  await using place = await Workplace.make();
  const store = ['--store', 'sqlite:own.db'];
  const held = 'metadata: { type: things.example.dev, id: stuck, finalizers: [gone] }\nspec: {}\n';
  expect((await place.run(['apply', '-f', '-', ...store], { input: held })).code).toBe(0);
  expect(await place.run(['release-finalizer', 'things.example.dev', 'stuck', 'gone', ...store])).toMatchObject({
    code: 0,
    stdout: expect.stringMatching(/it was held by \S+ since 20\S+Z; on record as event stuck\./),
  });
  expect((await place.run(['get', 'things.example.dev', 'stuck', '-o', 'jsonpath={.metadata.finalizers}', ...store])).stdout).toBe('');
  expect((await place.run(['events', ...store])).stdout).toMatch(
    /Warning +FinalizerReleased +things\/stuck +1 +finalizer gone of incarnation/,
  );
  expect(await place.run(['release-finalizer', 'things.example.dev', 'stuck', 'gone', ...store])).toMatchObject({
    code: 3,
    stdout: '',
    stderr: expect.stringContaining('has no finalizer gone; it has none'),
  });
});
