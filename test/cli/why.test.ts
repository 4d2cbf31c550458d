import { expect, test } from 'vitest';
import { openRemoteState } from '../../src/backends/remote/index.ts';
import { nodeEnvironment } from '../../src/environment/index.ts';
import { wrapCore } from '../../src/state/index.ts';
import { Workplace } from './harness.ts';

const module_ = `
import { defineResource, queueTransform } from ${JSON.stringify(new URL('../../dist/index.js', import.meta.url).href)};
import { z } from ${JSON.stringify(import.meta.resolve('zod'))};

const spec = z.object({ size: z.number().default(0) });
const apples = defineResource({ type: 'Apples.example.dev', spec });
const pies = defineResource({ type: 'Pies.example.dev', spec });

export const definitions = [apples, pies];
export const controllers = [
  queueTransform({
    name: 'baker',
    input: apples.kind(),
    output: pies.kind(),
    map: ({ metadata }) => pies.create({ id: metadata.id, spec: {} }),
    unmap: ({ id }) => apples.pointer(id),
    transform: (_context, apple, pie) => void (pie.spec = apple.spec),
    finalizerRemoval: (_context, { metadata }) => {
      if (metadata.id === 'burnt') throw new Error('the oven is broken');
    },
  }),
];
`;

const apples = `
metadata: { type: Apples.example.dev, id: red }
spec: { size: 1 }
---
metadata: { type: Apples.example.dev, id: burnt }
spec: { size: 1 }
---
metadata: { type: Apples.example.dev, id: old, finalizers: [retired-baker] }
spec: { size: 1 }
`;

/** A time as the store tells it. */
const time = '\\d{4}-\\d\\d-\\d\\dT[0-9:.]+Z';

test('why and describe tell who holds a resource, since when, and because of what; who is no more is named', async () => {
  await using place = await Workplace.make();
  await place.write('module.mjs', module_);
  await place.write('apples.yaml', apples);
  const server = place.start(['serve', 'module.mjs']);
  await server.shows('serving');
  expect(await place.run(['apply', '-f', 'apples.yaml'])).toMatchObject({ code: 0, stderr: '' });
  const environment = nodeEnvironment();
  await using remote = await openRemoteState({ address: `unix:${place.path('.steadystate/api.sock')}`, environment });
  const state = wrapCore(remote, { environment });
  const apple = (id: string) => ({ namespace: 'default', type: 'Apples.example.dev', id });
  const pie = { namespace: 'default', type: 'Pies.example.dev', id: 'red' };
  // Somebody holds the pie, so that its baker must wait for it.
  await state.watchFor(pie, { phases: ['running'] });
  await state.addFinalizer(pie, 'guest');
  for (const id of ['red', 'burnt', 'old']) {
    await state.watchFor(apple(id), { condition: ({ metadata }) => metadata.finalizers.includes('baker') });
    await state.teardown(apple(id));
  }
  const show = async (command: string, id: string, wanted: RegExp): Promise<string> => {
    for (;;) {
      const { stdout } = await place.run([command, 'apple', id]);
      if (wanted.test(stdout)) return stdout;
    }
  };
  const why = (finalizer: string, holder: string, because: string): RegExp =>
    new RegExp(`finalizer ${finalizer}: held by ${holder} since ${time} \\(for \\w+\\)\\n +because ${because}\\n`);
  await show('why', 'burnt', why('baker', 'baker', 'its controller failed \\d+ times in a row: the oven is broken'));
  await show('why', 'red', why('baker', 'baker', 'waits for Pies.example.dev/default/red to go'));
  const gone = 'no controller of this name runs here; if none will come back: steadystate release-finalizer apple old retired-baker';
  await show('why', 'old', why('retired-baker', 'retired-baker', gone));
  const described = await show('describe', 'red', /waits for/);
  expect(described).toMatch(
    new RegExp(`held:\\n +FINALIZER +HELD BY +SINCE +BECAUSE\\n +baker +baker +${time} \\(\\w+\\) +waits for Pies`),
  );
  expect(JSON.parse((await place.run(['why', 'apple', 'red', '-o', 'json'])).stdout).causes[0]).toEqual({
    about: 'finalizer baker',
    reason: expect.stringMatching(/^held by baker since /),
    message: 'because waits for Pies.example.dev/default/red to go',
    since: expect.stringMatching(new RegExp(`^${time}$`)),
  });
  expect(await place.run(['release-finalizer', 'apple', 'old', 'retired-baker'])).toMatchObject({ code: 0 });
  await state.removeFinalizer(pie, 'guest');
  for (const id of ['red', 'old']) await state.watchFor(apple(id), { eventTypes: ['destroyed'] });
});
