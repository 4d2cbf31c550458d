import { expect, test } from 'vitest';
import { SteadystateError } from '../resource/index.ts';
import { eachOf } from './each-of.ts';

async function tryAll(faults: Readonly<Record<string, Error>>): Promise<{ readonly tried: string; readonly error: unknown }> {
  let tried = '';
  const error = await eachOf('abcd', async (item) => {
    tried += item;
    const fault = faults[item];
    if (fault !== undefined) throw fault;
  }).catch((thrown: unknown) => thrown);
  return { tried, error };
}

test('each gets its turn; what failed is thrown at the end', async () => {
  const [b, c] = [new Error('b'), new SteadystateError('Forbidden', 'c')];
  expect(await tryAll({})).toEqual({ tried: 'abcd', error: undefined });
  expect(await tryAll({ b })).toEqual({ tried: 'abcd', error: b });
  expect(await tryAll({ b, c })).toMatchObject({ tried: 'abcd', error: { message: '2 items failed', errors: [b, c] } });
});

test('a store that does not answer is not asked for the rest', async () => {
  const away = new SteadystateError('Unavailable', 'away');
  expect(await tryAll({ b: away })).toEqual({ tried: 'ab', error: away });
  expect(await tryAll({ a: new Error('a'), c: away })).toMatchObject({ tried: 'abc', error: { errors: [{ message: 'a' }, away] } });
});
