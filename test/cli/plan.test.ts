import { existsSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { smallStack, Workplace } from './harness.ts';

interface PlanForm {
  readonly items: readonly {
    readonly action: string;
    readonly phases: readonly string[];
    readonly children: readonly {
      readonly action: string;
      readonly resource: { readonly metadata: { id: string }; readonly spec: never };
    }[];
    readonly prune: readonly unknown[];
  }[];
}

describe('a plan without a store', () => {
  let place: Workplace;
  beforeAll(async () => {
    place = await Workplace.make();
    await place.write('small.yaml', smallStack);
  });
  afterAll(() => place[Symbol.asyncDispose]());

  test('phases and children are told, and no store is made', async () => {
    const { code, stdout, stderr } = await place.run(['plan', '-f', 'small.yaml']);
    expect({ code, stderr }).toEqual({ code: 6, stderr: '' });
    expect(stdout).toMatch(/^stacks\/small would be created\n {2}phases: Dependencies, Files, Processes, Check-Ready, Complete\n/);
    for (const child of ['files/small/server.mjs', 'processes/small/web', 'processes/small/idle'])
      expect(stdout).toMatch(new RegExp(`^ {2}\\+ ${child}$`, 'm'));
    expect(existsSync(place.path('.steadystate'))).toBe(false);
  });

  test('the children are rendered; a port that nobody gave yet stays as it was written', async () => {
    const plan = JSON.parse((await place.run(['plan', '-f', 'small.yaml', '-o', 'json'])).stdout) as PlanForm;
    const web = plan.items[0]?.children.find(({ resource }) => resource.metadata.id === 'small/web');
    expect(web).toMatchObject({
      action: 'create',
      resource: { spec: { environment: { PORT: `\${port:web}` }, directory: place.path('data') } },
    });
    expect((await place.run(['plan', '-f', 'small.yaml', '-o', 'jsonpath={.items[*].action}'])).stdout).toBe('create');
  });

  test('workloads of a module', async () => {
    const dist = new URL('../../dist/', import.meta.url).href;
    await place.write(
      'operator.mjs',
      `import { defineResource } from '${dist}index.js';
import { defineWorkload, desiredChild } from '${dist}workload/index.js';
const anything = { '~standard': { version: 1, vendor: 'test', validate: (value) => ({ value }) } };
const parent = defineResource({ type: 'Pairs.example.dev', spec: anything, status: { type: 'PairStatuses.example.dev' } });
const child = defineResource({ type: 'Halves.example.dev', spec: anything, sensitivity: 'sensitive' });
export const workloads = [
  defineWorkload({
    definition: parent,
    children: [child],
    getResources: ({ name, spec }) => ['left', 'right'].map((side) => desiredChild(child.create({ id: name + '/' + side, spec: { secret: spec.secret } }))),
  }),
];
`,
    );
    await place.write('pair.yaml', 'metadata: { type: pair, id: a }\nspec: { secret: hush }\n');
    const planned = await place.run(['plan', '-f', 'pair.yaml', '--module', 'operator.mjs']);
    expect(planned).toMatchObject({ code: 6, stderr: '' });
    expect(planned.stdout).toMatch(/phases: Dependency, Create-Resources[\s\S]*\+ halves\/a\/left\n {2}\+ halves\/a\/right\n/);
    const form = (await place.run(['plan', '-f', 'pair.yaml', '--module', 'operator.mjs', '-o', 'yaml'])).stdout;
    // The child's type is sensitive, the parent's is not.
    expect(form.match(/hush/g)).toHaveLength(1);
    expect(form).toMatch(/secret: "?\*\*\* \(/);

    // The same module, served: its workloads have controllers.
    const serve = place.start(['serve', 'operator.mjs', '--store', 'memory:']);
    await serve.shows('serving');
    expect((await place.run(['apply', '-f', 'pair.yaml'])).code).toBe(0);
    expect((await place.run(['wait', 'halves', 'a/right', '--for=jsonpath={.metadata.owner}=Pairs-reconciler'])).code).toBe(0);
    expect(await place.run(['plan', '-f', 'pair.yaml', '--module', 'operator.mjs'])).toMatchObject({
      code: 0,
      stdout: expect.stringContaining('2 of 2 children stay as they are'),
    });
  });

  test.each([
    ['no file', ['plan'], 2, /-f FILE/],
    ['an output that it has not', ['plan', '-f', 'small.yaml', '-o', 'wide'], 2, /plan prints/],
    ['a bad file', ['plan', '-f', 'none.yaml'], 3, /none\.yaml does not exist/],
    ['a bad module', ['plan', '-f', 'small.yaml', '--module', 'none.mjs'], 1, /the module none\.mjs cannot be loaded/],
  ])('%s', async (_name, args, code, message) => {
    expect(await place.run(args as string[])).toMatchObject({ code, stdout: '', stderr: expect.stringMatching(message as RegExp) });
  });
});

describe('a plan beside a running operator', () => {
  let place: Workplace;
  beforeAll(async () => {
    place = await Workplace.make();
    await place.write('small.yaml', smallStack);
    await place.start(['up', 'small.yaml']).shows('ready: small');
  });
  afterAll(() => place[Symbol.asyncDispose]());

  test('what is as declared is 0', async () => {
    expect(await place.run(['plan', '-f', 'small.yaml'])).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(/^stacks\/small stays as it is\n {2}phases: .*\n {2}(\d+) of \1 children stay as they are\n$/),
    });
  });

  test('changes, new children and those to prune are told, and nothing is written', async () => {
    const changed = smallStack.replace("console.log('hello')", "console.log('hello!')").replaceAll('web', 'site');
    const { code, stdout } = await place.run(['plan', '-f', '-'], { input: changed });
    expect(code).toBe(6);
    expect(stdout).toMatch(/^stacks\/small would be changed\n/);
    expect(stdout).toMatch(/^ {2}\+ processes\/small\/site$/m);
    expect(stdout).toMatch(/^ {2}~ processes\/small\/idle\n(?: {6}.*\n)* {6}\+ .*hello!/m);
    expect(stdout).toMatch(/^ {2}- processes\/small\/web$/m);
    expect((await place.run(['plan', '-f', 'small.yaml'])).code).toBe(0);
  });
});
