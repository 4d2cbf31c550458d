import { expect, test } from 'vitest';
import type { Environment } from '../environment/index.ts';
import { manualEnvironment } from '../testing/index.ts';
import { addressOf } from './address.ts';
import type { ProcessSpec } from './process-definition.ts';
import { checkOnce, lineMatcher } from './readiness-check.ts';
import { ReadinessWatch } from './readiness-watch.ts';

test.each([
  ['8080', { host: '127.0.0.1', port: 8080 }],
  [':8080', { host: '127.0.0.1', port: 8080 }],
  ['db.local:5432', { host: 'db.local', port: 5432 }],
  ['[::1]:80', { host: '::1', port: 80 }],
  ['host:0', undefined],
  ['host:65536', undefined],
  ['host:', undefined],
  ['host', undefined],
  ['::1:80', undefined],
  ['', undefined],
])('%s is the address %o', (text, expected) => {
  expect(addressOf(text)).toEqual(expected);
});

test('text is held by a line, an expression matches in linear time', () => {
  expect(lineMatcher('a.b')('x a.b y')).toBe(true);
  expect(lineMatcher('a.b')('axb')).toBe(false);
  expect(lineMatcher({ expression: '^port \\d+$' })('port 80')).toBe(true);
  expect(lineMatcher({ expression: '(a+)+$' })(`${'a'.repeat(50_000)}!`)).toBe(false);
});

const spec = (ready: ProcessSpec['ready']): ProcessSpec => ({
  command: ['x'],
  directory: '/',
  environment: {},
  outputFile: '/x.log',
  ready,
});

test.each<[NonNullable<ProcessSpec['ready']>, number]>([
  [{ http: 'http://127.0.0.1:1/' }, 5_000],
  [{ tcp: '1' }, 5_000],
  [{ command: ['true'] }, 5_000],
  [{ http: 'http://127.0.0.1:1/', limitMs: 70 }, 70],
  [{ tcp: '1', limitMs: 70 }, 70],
  [{ command: ['true'], limitMs: 70 }, 70],
])('the check %o may take %i ms', async (ready, expected) => {
  const limits: number[] = [];
  const note = (answer: object) => async (request: { readonly limitMs: number }) => {
    limits.push(request.limitMs);
    return answer;
  };
  const environment = {
    network: { http: note({ status: 200 }), connect: note({}) },
    processes: { run: note({ code: 0, output: '', timedOut: false }), inherited: () => ({}) },
  } as unknown as Environment;
  expect(await checkOnce(environment, spec(ready), new AbortController().signal)).toBeUndefined();
  expect(limits).toEqual([expected]);
});

test('checks come one at a time, a second apart once it is ready; the third failure in a row counts, and one success', async () => {
  const real = manualEnvironment();
  const at: number[] = [];
  let running = 0;
  let status = 200;
  const http = async () => {
    expect(++running).toBe(1);
    at.push(real.elapsed());
    await real.sleep(300);
    running--;
    return { status, body: '' };
  };
  const environment = manualEnvironmentWith(real, http);
  const told: boolean[] = [];
  const watch = new ReadinessWatch({
    environment,
    spec: spec({ http: 'http://127.0.0.1:1/' }),
    outputStart: 0,
    ready: false,
    startedAt: 0,
    onChange: () => void told.push(watch.ready),
  });
  await real.advance(300);
  expect(told).toEqual([true]);
  await real.advance(3 * 1_300 - 300);
  expect(at).toEqual([0, 1_300, 2_600, 3_900]);
  status = 503;
  // The one on its way and two more fail.
  await real.advance(2 * 1_300 + 299);
  expect(told).toEqual([true]);
  await real.advance(1);
  expect([told, watch.problem]).toEqual([[true, false], 'http://127.0.0.1:1/ answered 503']);
  status = 200;
  await real.advance(5_000);
  expect(told).toEqual([true, false, true]);
  await watch.end();
  expect(real.open.counts()).toEqual({});
});

function manualEnvironmentWith(environment: Environment, http: unknown): Environment {
  return { ...environment, network: { ...environment.network, http: http as Environment['network']['http'] } };
}
