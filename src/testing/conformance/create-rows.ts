import { Bytes } from '../../resource/index.ts';
import type { ConformanceRow } from './tools.ts';
import { kind } from './tools.ts';

/** Get, list and create. */
export const createRows: readonly ConformanceRow[] = [
  {
    name: 'get: what is not there is NotFound, with its pointer',
    async run({ core, pointer, rejects }) {
      await rejects(core.get(pointer('a')), 'NotFound');
    },
  },
  {
    name: 'create: fills in version, uid and times, keeps labels, annotations, finalizers and phase, and answers what is stored',
    async run({ core, thing, pointer, same }) {
      const made = await core.create(
        thing(
          'a',
          { x: [1, 'ü', null, true] },
          { labels: { l: '1' }, annotations: { a: '' }, finalizers: ['f', 'g'], phase: 'tearingDown' },
        ),
        { owner: 'me' },
      );
      const { version, uid, created, updated, ...rest } = made.metadata;
      same(
        { ...rest },
        { ...kind, id: 'a', owner: 'me', phase: 'tearingDown', finalizers: ['f', 'g'], labels: { l: '1' }, annotations: { a: '' } },
      );
      if (version === 'undefined' || version === '') throw new Error('a stored resource needs a version');
      if (core.capabilities.incarnations && uid === '') throw new Error('a stored resource needs a uid');
      if (created === '' || updated === '') throw new Error('a stored resource needs its times');
      const read = await core.get(pointer('a'));
      same(read.metadata, made.metadata);
      same(read.spec, { x: [1, 'ü', null, true] });
    },
  },
  {
    name: 'create: specs of every kind come back as they were, frozen',
    async run({ core, thing, pointer, same }) {
      const spec = {
        text: 'a\n\u0001"',
        empty: '',
        number: 1.5,
        negative: -3,
        big: 2n ** 64n,
        bytes: Bytes.from(new Uint8Array([1, 0, 255])),
        list: [[], {}],
        no: null,
        yes: true,
        y: 'yes',
        constructor: 1,
      };
      await core.create(thing('a', spec));
      const read = await core.get(pointer('a'));
      same(read.spec, spec);
      if (!Object.isFrozen(read) || !Object.isFrozen(read.metadata) || !Object.isFrozen((read.spec as typeof spec).list))
        throw new Error('what is read must be frozen');
    },
  },
  {
    name: 'create: a resource that exists is a conflict, and stays as it was',
    async run({ core, thing, pointer, rejects, same }) {
      await core.create(thing('a', 1));
      await rejects(core.create(thing('a', 2)), 'Conflict', 'alreadyExists');
      same((await core.get(pointer('a'))).spec, 1);
    },
  },
  {
    name: 'create: an owner in the metadata that differs is an owner conflict; version, uid and times are ignored',
    async run({ core, thing, rejects, same }) {
      await rejects(core.create(thing('a', 1, { owner: 'other' })), 'Conflict', 'owner');
      const made = await core.create({ metadata: { ...kind, id: 'a', version: '77', owner: 'me' }, spec: 1 }, { owner: 'me' });
      if (made.metadata.version === '77') throw new Error('the given version must be ignored');
      same(made.metadata.owner, 'me');
    },
  },
  {
    name: 'create: the argument is never changed or frozen',
    async run({ core, same }) {
      const input = { metadata: { ...kind, id: 'a', labels: { l: '1' } }, spec: { list: [1] } };
      await core.create(input);
      input.spec.list.push(2);
      input.metadata.labels.l = '2';
      same((await core.get({ ...kind, id: 'a' })).spec, { list: [1] });
    },
  },
  {
    name: 'create: bad names, values and keys are Invalid',
    async run({ core, thing, rejects }) {
      for (const id of ['', 'a\u0000', 'a\n', 'x'.repeat(1025)]) await rejects(core.create(thing(id)), 'Invalid');
      for (const spec of [
        undefined,
        Number.NaN,
        2 ** 53,
        new Date(0),
        { a: undefined },
        () => 1,
        new Map(),
        JSON.parse('{"__proto__": 1}'),
      ])
        await rejects(core.create({ ...thing('a'), spec }), 'Invalid');
      await rejects(core.create(thing('a', 1, { labels: JSON.parse('{"__proto__": "x"}') })), 'Invalid');
      if (({} as { polluted?: unknown }).polluted !== undefined) throw new Error('Object.prototype was changed');
    },
  },
  {
    name: 'ids: slashes, dots and any well-formed text are inert',
    async run({ core, thing, pointer, same }) {
      const ids = ['../x', 'a/b', '%2e', '🜁', '.', 'ﬀ', 'x'.repeat(1024)];
      for (const id of ids) await core.create(thing(id));
      for (const id of ids) same((await core.get(pointer(id))).metadata.id, id);
    },
  },
  {
    name: 'list: sorted by the bytes of ids; an unknown kind is empty',
    async run({ core, thing, same }) {
      same((await core.list(kind)).items, []);
      const ids = ['b', 'a', 'B', 'a/b', 'ä', '\uffee', '😀', '10', '9', 'aa'];
      for (const id of ids) await core.create(thing(id));
      const expected = [...ids].sort((left, right) => Buffer.compare(Buffer.from(left), Buffer.from(right)));
      same(
        (await core.list(kind)).items.map((item) => item.metadata.id),
        expected,
      );
      same((await core.list({ ...kind, namespace: 'other' })).items, []);
    },
  },
  {
    name: 'list: label queries are OR, terms are AND; id queries are RE2',
    async run({ core, thing, same, rejects }) {
      await core.create(thing('a1', 1, { labels: { app: 'web', size: '4Gi' } }));
      await core.create(thing('a2', 1, { labels: { app: 'db', size: '5k' } }));
      await core.create(thing('b1', 1, { labels: { size: 'many' } }));
      await core.create(thing('b2'));
      const ids = async (options: Parameters<typeof core.list>[1]): Promise<readonly string[]> =>
        (await core.list(kind, options)).items.map((item) => item.metadata.id);
      const term = (
        key: string,
        op: 'equal' | 'exists' | 'in' | 'lessThan' | 'lessThanNumeric',
        values: readonly string[] = [],
        invert = false,
      ) => ({ key, op, values, invert });
      same(
        await ids({
          labelQueries: [{ terms: [term('app', 'equal', ['web'])] }, { terms: [term('app', 'equal', ['db']), term('size', 'exists')] }],
        }),
        ['a1', 'a2'],
      );
      same(await ids({ labelQueries: [{ terms: [term('app', 'exists', [], true)] }] }), ['b1', 'b2']);
      same(await ids({ labelQueries: [{ terms: [term('app', 'in', ['web', 'x'], true)] }] }), ['a2', 'b1', 'b2']);
      same(await ids({ labelQueries: [{ terms: [term('size', 'lessThanNumeric', ['1mi'])] }] }), ['a2']);
      same(await ids({ labelQueries: [{ terms: [term('size', 'lessThanNumeric', ['1mi'], true)] }] }), ['a1']);
      same(await ids({ labelQueries: [{ terms: [term('size', 'lessThan', ['5'])] }] }), ['a1']);
      same(await ids({ idQuery: '^a' }), ['a1', 'a2']);
      same(await ids({ idQuery: '[ab]2$' }), ['a2', 'b2']);
      same(await ids({ idQuery: '(a+)+$' }), []);
      await rejects(ids({ idQuery: '(' }), 'Invalid');
      await rejects(ids({ idQuery: '(?=a)' }), 'Invalid');
    },
  },
  {
    name: 'K3: a list is a snapshot while others write',
    needs: 'globalRevision',
    async run({ core, thing }) {
      // Pairs are created a before b: no list may show b without a.
      const writing = (async () => {
        for (let index = 0; index < 50; index++) {
          await core.create(thing(`a${index}`));
          await core.create(thing(`b${index}`));
        }
      })();
      for (let round = 0; round < 50; round++) {
        const ids = new Set((await core.list(kind)).items.map((item) => item.metadata.id));
        for (let index = 0; index < 50; index++)
          if (ids.has(`b${index}`) && !ids.has(`a${index}`)) throw new Error(`the list shows b${index} without a${index}`);
      }
      await writing;
    },
  },
];
