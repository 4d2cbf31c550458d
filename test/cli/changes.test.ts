import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { smallStack, Workplace } from './harness.ts';
import type { InProcessOptions } from './in-process.ts';
import { runInProcess } from './in-process.ts';

describe('looking before changing, and changing a little', () => {
  let place: Workplace;

  beforeAll(async () => {
    place = await Workplace.make();
    await place.write('small.yaml', smallStack);
    await place.start(['up', 'small.yaml']).shows('ready: small');
  });
  afterAll(() => place[Symbol.asyncDispose]());

  const quick = (args: readonly string[], options?: InProcessOptions) => runInProcess(place.folder, args, options);

  test('diff: nothing is 0, something is 6, and nothing is written', async () => {
    expect(await place.run(['diff', '-f', 'small.yaml'])).toMatchObject({ code: 0, stdout: '' });
    const changed = await place.run(['diff', '-f', '-'], { input: smallStack.replace('console.log(', 'console.info(') });
    expect(changed.code).toBe(6);
    expect(changed.stdout).toMatch(/^stacks\/small \(changed\)\n/);
    expect(changed.stdout).toMatch(/\n- .*console\.log\([\s\S]*\n\+ .*console\.info\(/);
    const added = await place.run(['diff', '-f', '-'], { input: smallStack.replace('id: small', 'id: other') });
    expect(added).toMatchObject({ code: 6, stdout: expect.stringMatching(/^stacks\/other \(new\)\n\+ metadata:/) });
    expect((await place.run(['get', 'stack', 'other'])).code).toBe(3);
  });

  test('label and annotate: set, refuse to overwrite, overwrite, remove', async () => {
    const labels = async (): Promise<unknown> =>
      JSON.parse((await place.run(['get', 'stack', 'small', '-o', 'json'])).stdout).metadata.labels;
    expect(await place.run(['label', 'stack', 'small', 'team=web', 'tier=1'])).toMatchObject({
      code: 0,
      stdout: 'stacks/small labelled\n',
    });
    expect(await labels()).toEqual({ team: 'web', tier: '1' });
    expect(await place.run(['label', 'stack', 'small', 'team=db'])).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('team=web already; add --overwrite'),
    });
    expect((await place.run(['label', 'stack', 'small', 'team=db', '--overwrite'])).code).toBe(0);
    expect(await place.run(['label', 'stack', 'small', 'team=db'])).toMatchObject({ code: 0, stdout: 'stacks/small unchanged\n' });
    expect((await place.run(['label', 'stack', 'small', 'team-', 'tier-'])).code).toBe(0);
    expect(await labels()).toBeUndefined();
    expect((await place.run(['annotate', 'stack', 'small', 'note=a b=c'])).code).toBe(0);
    expect((await place.run(['get', 'stack', 'small', '-o', 'jsonpath={.metadata.annotations.note}'])).stdout).toBe('a b=c');
    expect((await place.run(['label', 'stack', 'small', 'nonsense'])).code).toBe(2);
  });

  test('graph: controllers, and resources with their children', async () => {
    expect((await place.run(['graph'])).stdout).toMatch(/^flowchart LR\n[\s\S]*Stacks\.host\.steadystate\.dev/);
    expect((await place.run(['graph', '-o', 'dot'])).stdout).toMatch(/^digraph controllers \{/);
    expect(JSON.parse((await place.run(['graph', '-o', 'json'])).stdout).controllers.map(({ name }: { name: string }) => name)).toContain(
      'host-files',
    );
    expect((await place.run(['graph', '--resources', '-o', 'dot'])).stdout).toContain('"Stack/small" -> "Processes/small/web"');
    expect((await place.run(['graph', '-o', 'png'])).code).toBe(2);
  });

  test('namespaces', async () => {
    expect((await place.run(['namespaces', '-o', 'name'])).stdout).toContain('namespaces/default\n');
  });

  test('a finalizer whose holder never comes back is released, and that is on record', async () => {
    const { stdout } = await quick(['get', 'stack', 'small', '-o', 'json']);
    const stuck = {
      metadata: { type: 'Things.example.dev', id: 'stuck', finalizers: ['gone-forever'] },
      spec: { from: JSON.parse(stdout).metadata.id },
    };
    expect((await quick(['apply', '-f', '-'], { input: JSON.stringify(stuck) })).code).toBe(0);
    expect(await quick(['delete', 'Things.example.dev', 'stuck', '--wait', '--timeout', '200ms'])).toMatchObject({
      code: 5,
      stderr: expect.stringContaining('finalizers: gone-forever'),
    });
    expect((await quick(['why', 'Things.example.dev', 'stuck'])).stdout).toMatch(/being torn down\n {2}finalizer gone-forever/);
    expect(await place.run(['release-finalizer', 'Things.example.dev', 'stuck', 'other'])).toMatchObject({
      code: 3,
      stderr: expect.stringContaining('it has gone-forever'),
    });
    expect((await quick(['events', '--for', 'Things.example.dev/stuck'])).stdout).toBe('');
    expect(await place.run(['release-finalizer', 'Things.example.dev', 'stuck', 'gone-forever'])).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(
        /^released gone-forever of stuck; .*\nit was held by \S+ since \S+; no controller that runs here; on record as event stuck\.\S+\n$/,
      ),
    });
    expect((await quick(['get', 'Things.example.dev', 'stuck', '-o', 'jsonpath={.metadata.annotations}'])).stdout).toContain(
      'gone-forever by',
    );
    expect((await quick(['delete', 'Things.example.dev', 'stuck', '--wait'])).code).toBe(0);
    // The record outlives the resource, and is not deleted in passing.
    const events = await quick(['events', '--for', 'Things.example.dev/stuck', '-o', 'json']);
    const [record, ...others] = (JSON.parse(events.stdout) as { items: { metadata: { id: string }; spec: object }[] }).items;
    expect(others).toEqual([]);
    expect(record?.spec).toMatchObject({
      reason: 'FinalizerReleased',
      note: expect.stringMatching(
        /^finalizer gone-forever of incarnation \d+ was released by .+ on .+, process \d+ \(held by \S+ since \S+; no controller/,
      ),
      release: { finalizers: ['gone-forever'], phase: 'tearingDown', outcome: 'released' },
    });
    expect(await quick(['delete', 'event', record?.metadata.id as string])).toMatchObject({ code: 4 });
  });

  test('a holder that runs here is named', async () => {
    expect((await place.run(['release-finalizer', 'process', 'small/web', 'host-processes'])).stdout).toContain(
      '; the controller host-processes, which runs here; on record',
    );
  });
});
