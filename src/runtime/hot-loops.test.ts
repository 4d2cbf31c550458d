import { expect, test } from 'vitest';
import type { ManualEnvironment } from '../testing/index.ts';
import { manualEnvironment } from '../testing/index.ts';
import { HotLoops, newWriteLog } from './hot-loops.ts';
import { keyOf } from './keys.ts';

const primary = { namespace: 'default', type: 'Apples', id: 'a' };
const output = { namespace: 'default', type: 'Pies', id: 'a' };
const other = { namespace: 'default', type: 'Crumbs', id: 'c' };
const key = keyOf(primary);

function make(): { readonly loops: HotLoops; readonly environment: ManualEnvironment } {
  const environment = manualEnvironment();
  return { loops: new HotLoops(environment), environment };
}

let version = 0;

/** One run that writes `written`; what it wrote wakes the key while it runs. */
function run(loops: HotLoops, ...written: readonly (typeof primary)[]) {
  loops.start(key);
  const log = newWriteLog();
  for (const pointer of written) {
    log.count++;
    log.written.set(keyOf(pointer), String(++version));
    loops.wake(key, { ...pointer, version: String(version) }, true);
  }
  return loops.end(key, log);
}

/** How many runs it takes until the key is hot. */
function runsUntilHot(once: () => { readonly becameHot: boolean }, limit = 1000): number | undefined {
  for (let count = 1; count <= limit; count++) if (once().becameHot) return count;
  return undefined;
}

test('a key that is woken by nothing but its own writes gets hot', () => {
  for (const written of [primary, output]) {
    const { loops } = make();
    expect(runsUntilHot(() => run(loops, written))).toBe(100);
    expect(loops.isHot(key)).toBe(true);
    expect(loops.wake(key, { ...written, version: String(version) }, false)).toBe(1000);
  }
});

test('so does one that asks to run again and again, and writes', () => {
  const { loops } = make();
  expect(
    runsUntilHot(() => {
      loops.start(key);
      const log = newWriteLog();
      log.count = 1;
      log.written.set(keyOf(other), '1');
      return loops.end(key, log);
    }),
  ).toBe(100);
});

test('two that fight over an output are a loop too', () => {
  const { loops } = make();
  expect(
    runsUntilHot(() => {
      loops.wake(key, { ...output, version: `theirs ${++version}` }, false);
      return run(loops, output);
    }),
  ).toBe(100);
});

test('a change from outside explains a run', () => {
  for (const cause of [primary, other]) {
    const { loops } = make();
    expect(
      runsUntilHot(() => {
        loops.wake(key, { ...cause, version: `outside ${++version}` }, false);
        return run(loops, primary, output);
      }),
    ).toBeUndefined();
  }
});

test('a run that writes nothing ends the row', () => {
  const { loops } = make();
  let count = 0;
  expect(runsUntilHot(() => (++count % 50 === 0 ? run(loops) : run(loops, output)))).toBeUndefined();
});

test('twice a second is slow enough', async () => {
  const { loops, environment } = make();
  for (let count = 0; count < 300; count++) {
    expect(run(loops, output).becameHot).toBe(false);
    await environment.advance(500);
  }
}, 30_000);

test('a hot key cools down while it is slow', async () => {
  const { loops, environment } = make();
  runsUntilHot(() => run(loops, output));
  let slowRuns = 0;
  while (loops.isHot(key)) {
    await environment.advance(1000);
    run(loops, output);
    slowRuns++;
  }
  expect(slowRuns).toBeGreaterThan(30);
  expect(slowRuns).toBeLessThan(70);
});

test('a change from outside is not slowed down, whenever it comes', () => {
  const { loops } = make();
  runsUntilHot(() => run(loops, output));
  expect(loops.wake(key, { ...other, version: 'new' }, false)).toBe(0);
  // While it runs nobody knows yet who it was: it waits, and is woken at the end of the run.
  loops.start(key);
  expect(loops.wake(key, { ...primary, version: 'new' }, true)).toBe(1000);
  const log = newWriteLog();
  log.count = 1;
  log.written.set(keyOf(output), '1');
  expect(loops.end(key, log).wakeNow).toBe(true);
  // One that wrote nothing is no loop any more.
  loops.start(key);
  loops.wake(key, { ...primary, version: 'newer' }, true);
  expect(loops.end(key, newWriteLog()).wakeNow).toBe(true);
  expect(loops.isHot(key)).toBe(false);
});

test('very many causes at once are taken for one from outside', () => {
  const { loops } = make();
  const many = Array.from({ length: 400 }, (_, index) => ({ ...output, id: `${index}` }));
  expect(runsUntilHot(() => run(loops, ...many), 200)).toBeUndefined();
});

test('what does not run any more is forgotten, also with its incarnation', async () => {
  const { loops, environment } = make();
  runsUntilHot(() => run(loops, output));
  loops.forget(key);
  expect(loops.isHot(key)).toBe(false);
  runsUntilHot(() => run(loops, output));
  await environment.advance(10_000);
  const log = newWriteLog();
  log.count = 1;
  loops.start('another');
  loops.end('another', log);
  expect(loops.isHot(key)).toBe(false);
});
