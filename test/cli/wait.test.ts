import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { smallStack, Workplace } from './harness.ts';

describe('wait, by its rules', () => {
  let place: Workplace;
  const thing = (id: string, ready: boolean | undefined, more = ''): string =>
    `metadata: { type: thing, id: ${id}${more} }\nspec: { ready: ${ready} }\n`;
  const apply = async (text: string): Promise<void> => {
    expect((await place.run(['apply', '-f', '-'], { input: text })).code).toBe(0);
  };

  beforeAll(async () => {
    place = await Workplace.make();
    await place.serveModule(`
const ready = ({ spec }) =>
  spec.ready === 'broken'
    ? { status: 'Failed', reason: 'Broken', message: 'it fell' }
    : spec.ready ? { status: 'Current', reason: 'Ready', message: '' } : { status: 'InProgress', reason: 'NotYet', message: 'soon' };
export const definitions = [
  defineResource({ type: 'Things.example.dev', spec, ready }),
  defineResource({ type: 'Rocks.example.dev', spec }),
  defineResource({ type: 'Pots.example.dev', spec, status: { type: 'PotStatuses.example.dev' } }),
  defineResource({ type: 'PotStatuses.example.dev', spec }),
];
`);
  });
  afterAll(() => place[Symbol.asyncDispose]());

  test('what is absent is waited for', async () => {
    const wait = place.start(['wait', 'thing', 'later', '--for=ready', '--timeout', '15s']);
    const settled = wait.result.then(() => 'ended');
    await apply(thing('other', true));
    expect(await Promise.race([settled, Promise.resolve('waiting')])).toBe('waiting');
    await apply(thing('later', true));
    expect(await wait.result).toMatchObject({ code: 0, stdout: 'later: ready\n' });
  });

  test('what becomes ready later is waited for; what fails ends it with 1', async () => {
    await apply(thing('slow', false));
    const [ready, failed] = [
      place.start(['wait', 'thing', 'slow', '--for=ready', '--timeout', '15s']),
      place.start(['wait', 'thing', 'bad', '--for=ready', '--timeout', '15s']),
    ];
    await apply(thing('slow', true));
    await apply('metadata: { type: thing, id: bad }\nspec: { ready: broken }\n');
    expect((await ready.result).code).toBe(0);
    expect(await failed.result).toMatchObject({ code: 1, stderr: expect.stringContaining('Broken: it fell') });
  });

  test('what vanishes ends it with 3', async () => {
    await apply(thing('gone', false, ', finalizers: [hold]'));
    const wait = place.start(['wait', 'thing', 'gone', '--for=ready', '--timeout', '15s']);
    // It has looked once when a second command, started later, has ended.
    await place.run(['wait', 'thing', 'gone', '--for=jsonpath={.spec.ready}=false']);
    await place.run(['get', 'thing', 'gone']);
    expect((await place.run(['delete', 'thing', 'gone'])).stdout).toContain('is being deleted');
    expect((await place.run(['release-finalizer', 'thing', 'gone', 'hold'])).code).toBe(0);
    expect(await wait.result).toMatchObject({ code: 3, stderr: expect.stringContaining('was destroyed while it was waited for') });
  });

  test('Ctrl-C ends a wait with 130: what was waited for is not so', async () => {
    await apply(thing('endless', false));
    for (const args of [
      ['wait', 'thing', 'endless', '--for=ready', '--timeout', '60s'],
      ['wait', 'thing', 'endless', '--for=destroyed', '--timeout', '60s'],
    ]) {
      const wait = place.start(args);
      // It has begun once a command that was started later has ended.
      await place.run(['wait', 'thing', 'endless', '--for=jsonpath={.spec.ready}=false']);
      await place.run(['get', 'thing', 'endless']);
      wait.kill('SIGINT');
      expect(await wait.result).toEqual({ code: 130, stdout: '', stderr: '' });
    }
  });

  test('destroyed: waits for the end, and says who holds it when the time is over', async () => {
    await apply(thing('held', true, ', finalizers: [hold]'));
    expect((await place.run(['delete', 'thing', 'held'])).code).toBe(0);
    expect(await place.run(['wait', 'thing', 'held', '--for=destroyed', '--timeout', '200ms'])).toMatchObject({
      code: 5,
      stderr: expect.stringMatching(/finalizers: hold; ask: steadystate why/),
    });
    expect((await place.run(['why', 'thing', 'held'])).stdout).toMatch(/being torn down[\s\S]*finalizer hold/);
    for (const args of [
      ['wait', 'thing', 'held', '--for=destroyed', '--timeout', '0'],
      ['delete', 'thing', 'held', '--wait', '--timeout', '0'],
    ])
      expect(await place.run(args)).toMatchObject({ code: 5, stderr: expect.stringMatching(/is still there.*ask: steadystate why/) });
    const deleted = place.start(['delete', 'thing', 'held', '--wait', '--timeout', '15s']);
    await deleted.shows('held: waiting for hold');
    expect((await place.run(['release-finalizer', 'thing', 'held', 'hold'])).code).toBe(0);
    expect(await deleted.result).toMatchObject({ code: 0, stdout: expect.stringContaining('things/held deleted') });
  });

  test('what is said to ask or to do next names the namespace, where it is not the usual one', async () => {
    await apply('metadata: { type: rock, namespace: quarry, id: a, finalizers: [hold] }\nspec: {}\n');
    const { code, stderr } = await place.run(['delete', 'rock', 'a', '-n', 'quarry', '--wait', '--timeout', '200ms']);
    expect({ code, stderr }).toMatchObject({
      code: 5,
      stderr: expect.stringMatching(/ask: steadystate why Rocks\.example\.dev a -n quarry\n$/),
    });
    const told = (await place.run(['why', 'rock', 'a', '-n', 'quarry'])).stdout;
    expect(told).toContain('steadystate release-finalizer rock a hold -n quarry\n');
    expect(await place.run(['release-finalizer', 'rock', 'a', 'hold', '-n', 'quarry'])).toMatchObject({ code: 0 });
  });

  test('a type that cannot be ready is wrong use', async () => {
    await apply('metadata: { type: rock, id: a }\nspec: {}\n');
    expect(await place.run(['wait', 'rock', 'a', '--for=ready'])).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('has no readiness'),
    });
  });

  test('a status of an older version is no answer, whether its conditions are asked or its fields', async () => {
    const pot = (level: number): string => `metadata: { type: pot, id: p }\nspec: { level: ${level} }\n`;
    const see = async (): Promise<void> => {
      const version = (await place.run(['get', 'pot', 'p', '-o', 'jsonpath={.metadata.version}'])).stdout;
      const conditions = '[{ type: Full, status: "True", reason: Filled, message: "" }]';
      await apply(
        `metadata: { type: potstatuses, id: p }\nspec: { level: full, observedVersion: "${version}", conditions: ${conditions} }\n`,
      );
    };
    const goals = ['condition=Full', 'jsonpath={.status.level}=full', 'jsonpath={.status.level}'];
    const wait = (goal: string) => place.run(['wait', 'pot', 'p', `--for=${goal}`, '--timeout', '100ms']);
    await apply(pot(1));
    await see();
    expect(await wait('jsonpath={.status.level}')).toMatchObject({ code: 0 });
    await apply(pot(2));
    for (const answer of await Promise.all(goals.map(wait)))
      expect(answer).toMatchObject({ code: 5, stderr: expect.stringContaining('its controller has not seen the present version yet') });
    await see();
    for (const answer of await Promise.all(goals.map(wait))) expect(answer).toMatchObject({ code: 0 });
  }, 60_000);

  test('a path that is there, or has a value', async () => {
    await apply('metadata: { type: rock, id: b }\nspec: { list: [{ n: 1 }, { n: 2 }] }\n');
    const path = (text: string) => place.run(['wait', 'rock', 'b', `--for=jsonpath=${text}`, '--timeout', '100ms']);
    expect((await path('{.spec.list[1].n}')).code).toBe(0);
    expect((await path("'{.spec.list[1].n}'=2")).code).toBe(0);
    expect((await path('{.spec.list[*].n}=1 2')).code).toBe(0);
    expect((await path('{.spec.none}')).code).toBe(5);
    expect((await path('nonsense')).code).toBe(2);
    expect((await path('{.spec[}=1')).code).toBe(2);
  });
});

describe('up', () => {
  let place: Workplace;
  beforeEach(async () => {
    place = await Workplace.make();
  });
  afterEach(() => place[Symbol.asyncDispose]());

  test('--until ready ends with 5 and the reasons when the time is over', async () => {
    await place.write('never.yaml', smallStack.replace('log: hello', 'log: never-said'));
    const result = await place.run(['up', 'never.yaml', '--until', 'ready', '--timeout', '3s']);
    expect(result.code).toBe(5);
    expect(result.stderr).toMatch(/not ready in time:\n {2}small: .*idle/);
  });

  test('--until ready ends with 0, and stops what it started', async () => {
    await place.write('small.yaml', smallStack);
    const result = await place.run(['up', 'small.yaml', '--until', 'ready']);
    expect(result).toMatchObject({ code: 0, stderr: '', stdout: expect.stringContaining('ready: small') });
    expect((await place.run(['get', 'stacks', '-o', 'name'])).stdout).toBe('stacks/small\n');
  });

  test('Ctrl-C twice ends at once; the next up finds what still runs', async () => {
    await place.write(
      'deaf.yaml',
      `metadata: { type: stack, id: deaf }
spec:
  directory: ./data
  services:
    deaf:
      command: [node, -e, "process.on('SIGTERM', () => console.log('no')); setInterval(() => {}, 1000); console.log('here')"]
      ready: { log: here }
      stop: { graceMs: 60000 }
`,
    );
    const up = place.start(['up', 'deaf.yaml']);
    await up.shows('to start over');
    const pid = (await place.run(['get', 'process', 'deaf/deaf', '-o', 'jsonpath={.status.pid}'])).stdout;
    up.kill('SIGINT');
    // It is asked to stop, and does not listen.
    await said(place, 'no');
    up.kill('SIGINT');
    expect((await up.result).code).toBe(130);
    expect(() => process.kill(Number(pid), 0)).not.toThrow();
    process.kill(Number(pid), 'SIGKILL');
    const next = place.start(['up', 'deaf.yaml']);
    await next.shows('ready: deaf');
    const now = (await place.run(['get', 'process', 'deaf/deaf', '-o', 'jsonpath={.status.pid}'])).stdout;
    expect(now).not.toBe(pid);
    next.kill('SIGINT');
    await said(place, 'no', 2);
    process.kill(Number(now), 'SIGKILL');
    expect((await next.result).code).toBe(0);
  });
});

/** Waits until the service of the deaf stack has said a word so many times. */
async function said(place: Workplace, word: string, times = 1): Promise<void> {
  const { readFile } = await import('node:fs/promises');
  for (;;) {
    const text = await readFile(place.path('data/.logs/deaf/deaf.log'), 'utf8').catch(() => '');
    if (text.split('\n').filter((line) => line === word).length >= times) return;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}
