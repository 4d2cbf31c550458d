import { afterEach, expect, test } from 'vitest';
import { manualEnvironment } from '../testing/index.ts';
import { limited } from './limited.ts';

const environment = manualEnvironment();
afterEach(() => expect(environment.open.counts()).toEqual({}));

test('an answer or error in time is passed on, and no timer is left', async () => {
  const { signal } = new AbortController();
  await expect(limited(environment, 'f', 10, signal, () => 'now')).resolves.toBe('now');
  await expect(limited(environment, 'f', 10, signal, async () => 'soon')).resolves.toBe('soon');
  const broken = async (): Promise<never> => {
    throw new Error('broken');
  };
  await expect(limited(environment, 'f', 10, signal, broken)).rejects.toThrow('broken');
});

test('what hangs ends at the deadline, and says what hung', async () => {
  const late = expect(
    limited(environment, 'getResources', 30_000, new AbortController().signal, () => new Promise(() => {})),
  ).rejects.toThrow('getResources did not end within 30000 ms');
  await environment.advance(30_000);
  await late;
});

test('what hangs ends with the reconcile', async () => {
  const abort = new AbortController();
  const ended = expect(limited(environment, 'f', 30_000, abort.signal, () => new Promise(() => {}))).rejects.toThrow('stop');
  abort.abort(new Error('stop'));
  await ended;
  await expect(limited(environment, 'f', 10, abort.signal, () => 'never')).rejects.toThrow('stop');
});
