import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { z } from 'zod';
import { memoryState } from '../../src/backends/memory/index.ts';
import { openRemoteState } from '../../src/backends/remote/index.ts';
import { nodeEnvironment } from '../../src/environment/index.ts';
import type { Resource } from '../../src/resource/index.ts';
import { Bytes, DefinitionRegistry, defineResource } from '../../src/resource/index.ts';
import { serveState } from '../../src/server/index.ts';
import { wrapCore } from '../../src/state/index.ts';

/** Its protobuf form is one byte; above 100 it cannot be read. */
const numbers = defineResource({
  type: 'Numbers.example.dev',
  spec: z.strictObject({ n: z.number().max(100) }),
  codec: {
    encode: ({ n }) => Uint8Array.of(n),
    decode: ([n = 0]) => {
      if (n > 100) throw new Error(`${n} is too much`);
      return { n };
    },
  },
});

const form = (proto: number, yaml: string) => ({ $wire: { proto: Bytes.from(Uint8Array.of(proto)), yaml } });

test('a client with a codec decodes what it reads, unless it is asked for what came', async () => {
  const environment = nodeEnvironment();
  const directory = await mkdtemp(join(tmpdir(), 'steadystate-'));
  {
    await using core = memoryState({ environment });
    // The server knows no definitions: it keeps what it is given byte for byte.
    await using server = await serveState({
      state: core,
      environment,
      listen: ['unix:s'],
      directory,
      control: { version: '1', pid: 1, store: 'memory:' },
    });
    const address = server.addresses[0] as string;
    await using plain = await openRemoteState({ address, environment });
    await using typed = await openRemoteState({ address, environment, registry: new DefinitionRegistry([numbers]) });
    const state = wrapCore(typed, { environment });
    await state.create(numbers.create({ id: 'seven', spec: { n: 7 } }));
    await plain.create({ metadata: { namespace: 'default', type: numbers.type, id: 'odd' }, spec: form(200, '{"n":200}') });

    expect((await state.get(numbers.pointer('seven'))).spec).toEqual({ n: 7 });
    expect((await state.get(numbers.pointer('seven'), { raw: true })).spec).toEqual(form(7, '{"n":7}'));
    // What cannot be decoded stops neither a read nor a list nor a watch; the definition says what is wrong with it.
    const odd = await state.get(numbers.pointer('odd'));
    expect(odd.spec).toEqual(form(200, '{"n":200}'));
    expect(() => numbers.from(odd)).toThrow(expect.objectContaining({ code: 'Invalid', pointer: numbers.pointer('odd') }));
    const specs = async (raw: boolean) => (await state.list(numbers.kind(), { raw })).items.map(({ spec }) => spec as unknown);
    expect(await specs(false)).toEqual([form(200, '{"n":200}'), { n: 7 }]);
    expect(await specs(true)).toEqual([form(200, '{"n":200}'), form(7, '{"n":7}')]);
    for (const [raw, expected] of [
      [false, { n: 7 }],
      [true, form(7, '{"n":7}')],
    ] as const) {
      await using one = await state.watch(numbers.pointer('seven'), { raw });
      await using kind = await state.watchKind(numbers.kind(), { raw, bootstrapContents: true });
      await using kinds = await state.watchKinds([numbers.kind()], { raw, bootstrapContents: true });
      const first = (await one[Symbol.asyncIterator]().next()).value;
      expect((first as { resource: Resource }).resource.spec).toEqual(expected);
      const seen: unknown[] = [];
      for await (const event of kind) {
        if (event.type === 'bootstrapped') break;
        if (event.type === 'created') seen.push(event.resource.spec);
      }
      for await (const batch of kinds) {
        for (const event of batch) if (event.type === 'created') seen.push(event.resource.spec);
        if (batch.some((event) => event.type === 'bootstrapped')) break;
      }
      expect(seen).toEqual([form(200, '{"n":200}'), expected, form(200, '{"n":200}'), expected]);
    }
    // What was read raw goes back as it came.
    const raw = await state.get(numbers.pointer('odd'), { raw: true });
    await typed.update(raw);
    expect((await core.get(numbers.pointer('odd'))).spec).toEqual(form(200, '{"n":200}'));
  }
  await rm(directory, { recursive: true });
  expect(environment.open.counts()).toEqual({});
});
