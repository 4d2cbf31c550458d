import { strict as assert } from 'node:assert';
import type { Resource } from '../../resource/index.ts';
import type { Case } from './world.ts';
import { expectRejects } from './world.ts';

export const writeCases: readonly Case[] = [
  {
    name: 'create: answers what is stored, which is what a get answers',
    async run(world) {
      const made = await world.create('a', 1, { labels: { app: 'web' }, annotations: { note: 'x' }, finalizers: ['f'] });
      assert.deepEqual(await world.core.get(world.pointer('a')), made);
      const { metadata } = made;
      assert.equal(metadata.namespace, world.kind.namespace);
      assert.equal(metadata.type, world.kind.type);
      assert.equal(metadata.id, 'a');
      assert.equal(metadata.phase, 'running');
      assert.equal(metadata.owner, '');
      assert.deepEqual([...metadata.finalizers], ['f'], 'create with finalizers is atomic');
      assert.match(metadata.version, /^[0-9]+$/);
      assert.match(metadata.created, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$/);
      assert.equal(metadata.updated, metadata.created);
    },
  },
  {
    name: 'writes: options that are no text, or no phase, are invalid, and nothing is written',
    async run(world) {
      const made = await world.create('a', 1);
      const pointer = world.pointer('a');
      const wrong = [5, null, '\ud800', {}] as unknown as string[];
      for (const value of wrong) {
        await expectRejects(world.create('b', 1, { finalizers: ['f'] }, { owner: value }), { code: 'Invalid' });
        await expectRejects(world.create('b', 1, { finalizers: ['f'] }, { actor: value }), { code: 'Invalid' });
        await expectRejects(world.core.update(made, { owner: value }), { code: 'Invalid' });
        await expectRejects(world.core.update(made, { currentVersion: value }), { code: 'Invalid' });
        await expectRejects(world.core.update(made, { expectedPhase: value as 'any' }), { code: 'Invalid' });
        await expectRejects(world.core.destroy(pointer, { owner: value }), { code: 'Invalid' });
        await expectRejects(world.core.destroy(pointer, { uid: value }), { code: 'Invalid' });
      }
      await expectRejects(world.core.get(world.pointer('b')), { code: 'NotFound' });
      assert.deepEqual(await world.core.get(pointer), made);
    },
  },
  {
    name: 'create: what exists is a conflict, whoever asks',
    async run(world) {
      await world.create('a', 1, {}, { owner: 'A' });
      await expectRejects(world.create('a', 2, {}, { owner: 'A' }), { code: 'Conflict', reason: 'alreadyExists', id: 'a' });
      await expectRejects(world.create('a', 2), { code: 'Conflict', reason: 'alreadyExists', id: 'a' });
      assert.deepEqual((await world.core.get(world.pointer('a'))).spec, { size: 1 });
    },
  },
  {
    name: 'create: the owner comes from the options, and another one in the metadata is a conflict',
    async run(world) {
      assert.equal((await world.create('a', 1, {}, { owner: 'A' })).metadata.owner, 'A');
      assert.equal((await world.create('b', 1, { owner: 'B' }, { owner: 'B' })).metadata.owner, 'B');
      await expectRejects(world.create('c', 1, { owner: 'B' }, { owner: 'A' }), { code: 'Conflict', reason: 'owner', id: 'c' });
      await expectRejects(world.create('c', 1, { owner: 'B' }), { code: 'Conflict', reason: 'owner', id: 'c' });
      await expectRejects(world.core.get(world.pointer('c')), { code: 'NotFound' });
    },
  },
  {
    name: 'create: version, uid and timestamps of the argument are ignored, the phase is kept',
    async run(world) {
      const forged = {
        version: '999999',
        uid: '77',
        created: '1999-01-01T00:00:00Z',
        updated: '1999-01-01T00:00:00Z',
        phase: 'tearingDown' as const,
      };
      const { metadata } = await world.create('a', 1, forged);
      assert.notEqual(metadata.version, forged.version);
      assert.notEqual(metadata.uid, forged.uid);
      assert.ok(metadata.created > '2000', 'created is the time of the store');
      assert.equal(metadata.phase, 'tearingDown');
    },
  },
  {
    name: 'update: checks NotFound, then owner, then version, then phase',
    async run(world) {
      const update = (metadata: object, options: object = {}) => world.core.update(world.thing('a', { size: 2 }, metadata), options);
      await expectRejects(update({ version: '1' }, { owner: 'B' }), { code: 'NotFound', id: 'a' });
      const { version } = (await world.create('a', 1, { phase: 'tearingDown' }, { owner: 'A' })).metadata;
      const stale = `${version}9`;
      await expectRejects(update({ version: stale, phase: 'tearingDown' }, { owner: 'B' }), { code: 'Conflict', reason: 'owner', id: 'a' });
      await expectRejects(update({ version: stale, phase: 'tearingDown' }), { code: 'Conflict', reason: 'owner', id: 'a' });
      await expectRejects(update({ version: stale, phase: 'tearingDown' }, { owner: 'A' }), {
        code: 'Conflict',
        reason: 'version',
        id: 'a',
      });
      await expectRejects(update({ version, phase: 'tearingDown' }, { owner: 'A' }), { code: 'Conflict', reason: 'phase', id: 'a' });
      const { spec, metadata } = await update({ version, phase: 'tearingDown' }, { owner: 'A', expectedPhase: 'tearingDown' });
      assert.deepEqual(spec, { size: 2 });
      await update({ version: metadata.version, phase: 'tearingDown' }, { owner: 'A', expectedPhase: 'any' });
    },
  },
  {
    name: 'update: the owner must match exactly, in the options and in the metadata',
    async run(world) {
      const free = await world.create('free');
      await expectRejects(world.core.update(world.thing('free', 2, { version: free.metadata.version }), { owner: 'A' }), {
        code: 'Conflict',
        reason: 'owner',
      });
      await expectRejects(world.core.update(world.thing('free', 2, { version: free.metadata.version, owner: 'A' })), {
        code: 'Conflict',
        reason: 'owner',
      });
      const owned = await world.create('owned', 1, {}, { owner: 'A' });
      const { version } = owned.metadata;
      await expectRejects(world.core.update(world.thing('owned', 2, { version, owner: 'B' }), { owner: 'A' }), {
        code: 'Conflict',
        reason: 'owner',
      });
      await expectRejects(world.core.update(world.thing('owned', 2, { version, owner: 'A' })), { code: 'Conflict', reason: 'owner' });
      const next = await world.core.update(world.thing('owned', 2, { version }), { owner: 'A' });
      assert.equal(next.metadata.owner, 'A', 'an empty owner in the metadata keeps the stored one');
      const last = await world.core.update(world.thing('owned', 3, { version: next.metadata.version, owner: 'A' }), { owner: 'A' });
      assert.equal(last.metadata.owner, 'A');
    },
  },
  {
    name: 'update: currentVersion counts over the version of the resource, and no version is no precondition met',
    async run(world) {
      const first = await world.create('a');
      await expectRejects(world.core.update(world.thing('a', { size: 2 })), { code: 'Conflict', reason: 'version', id: 'a' });
      const second = await world.core.update(world.thing('a', { size: 2 }, { version: 'nonsense' }), {
        currentVersion: first.metadata.version,
      });
      await expectRejects(
        world.core.update(world.thing('a', { size: 3 }, { version: second.metadata.version }), { currentVersion: first.metadata.version }),
        {
          code: 'Conflict',
          reason: 'version',
        },
      );
      assert.deepEqual((await world.core.get(world.pointer('a'))).spec, { size: 2 });
    },
  },
  {
    name: 'update: from running to tearingDown, and never back',
    async run(world) {
      const made = await world.create('a');
      const torn = await world.core.update(world.thing('a', 1, { version: made.metadata.version, phase: 'tearingDown' }));
      assert.equal(torn.metadata.phase, 'tearingDown');
      for (const expectedPhase of ['any', 'tearingDown'] as const) {
        await expectRejects(
          world.core.update(world.thing('a', 1, { version: torn.metadata.version, phase: 'running' }), { expectedPhase }),
          {
            code: 'Conflict',
            reason: 'phase',
            id: 'a',
          },
        );
      }
      assert.equal((await world.core.get(world.pointer('a'))).metadata.phase, 'tearingDown');
    },
  },
  {
    name: 'update: replaces spec, labels, annotations and finalizers; uid, created and updated of the argument are ignored',
    async run(world) {
      const made = await world.create('a', 1, { labels: { a: '1' }, annotations: { a: '1' }, finalizers: ['a'] });
      const forged = { version: made.metadata.version, uid: 'forged', created: '1999-01-01T00:00:00Z', updated: '1999-01-01T00:00:00Z' };
      const next = await world.core.update(world.thing('a', { other: true }, { ...forged, labels: { b: '2' }, finalizers: ['b'] }));
      assert.deepEqual(next.spec, { other: true });
      assert.deepEqual({ ...next.metadata.labels }, { b: '2' });
      assert.deepEqual({ ...next.metadata.annotations }, {});
      assert.deepEqual([...next.metadata.finalizers], ['b']);
      assert.equal(next.metadata.created, made.metadata.created, 'created survives updates');
      assert.equal(next.metadata.uid, made.metadata.uid, 'the uid survives updates');
      assert.ok(next.metadata.updated >= made.metadata.updated);
      assert.deepEqual(await world.core.get(world.pointer('a')), next);
    },
  },
  {
    name: 'update: without a change it still writes a new version and an event',
    async run(world) {
      const made = await world.create('a');
      const reader = await world.watchKind();
      const next = await world.core.update(made);
      assert.notEqual(next.metadata.version, made.metadata.version);
      const event = await reader.next();
      assert.equal(event.type, 'updated');
    },
  },
  {
    name: 'destroy: checks NotFound, then owner, then incarnation, then finalizers',
    needs: ['incarnations'],
    async run(world) {
      await expectRejects(world.core.destroy(world.pointer('a'), { owner: 'B' }), { code: 'NotFound', id: 'a' });
      const { uid } = (await world.create('a', 1, { finalizers: ['f', 'g'] }, { owner: 'A' })).metadata;
      await expectRejects(world.core.destroy(world.pointer('a'), { owner: 'B', uid: 'x' }), { code: 'Conflict', reason: 'owner', id: 'a' });
      await expectRejects(world.core.destroy(world.pointer('a')), { code: 'Conflict', reason: 'owner', id: 'a' });
      // The empty one is that of a resource whose uid is not known: no store may take it for whichever is there.
      for (const other of [`${uid}0`, ''])
        await expectRejects(world.core.destroy(world.pointer('a'), { owner: 'A', uid: other }), {
          code: 'Conflict',
          reason: 'incarnation',
          id: 'a',
        });
      await expectRejects(world.core.destroy(world.pointer('a'), { owner: 'A', uid }), {
        code: 'Conflict',
        reason: 'pendingFinalizers',
        id: 'a',
      });
      await world.state.removeFinalizer(world.pointer('a'), 'f', 'g');
      await world.core.destroy(world.pointer('a'), { owner: 'A', uid });
      await expectRejects(world.core.get(world.pointer('a')), { code: 'NotFound' });
    },
  },
  {
    name: 'destroy: owner and finalizers stop it; a running resource and one in teardown may go',
    async run(world) {
      await world.create('owned', 1, {}, { owner: 'A' });
      await world.create('held', 1, { finalizers: ['f'] });
      await world.create('running');
      await world.create('torn', 1, { phase: 'tearingDown' });
      await expectRejects(world.core.destroy(world.pointer('owned')), { code: 'Conflict', reason: 'owner' });
      await expectRejects(world.core.destroy(world.pointer('running'), { owner: 'A' }), { code: 'Conflict', reason: 'owner' });
      await expectRejects(world.core.destroy(world.pointer('held')), { code: 'Conflict', reason: 'pendingFinalizers' });
      await world.core.destroy(world.pointer('running'));
      await world.core.destroy(world.pointer('torn'));
      assert.deepEqual(
        (await world.core.list(world.kind)).items.map((item) => item.metadata.id),
        ['held', 'owned'],
      );
    },
  },
  {
    name: 'versions: none is ever used twice, so that a writer of an earlier incarnation gets a conflict',
    async run(world) {
      const seen = new Set<string>();
      let stale: string | undefined;
      for (let incarnation = 0; incarnation < 5; incarnation++) {
        let current = await world.create('a');
        for (let round = 0; round < 3; round++) {
          assert.ok(!seen.has(current.metadata.version), `version ${current.metadata.version} came twice`);
          seen.add(current.metadata.version);
          if (stale !== undefined)
            await expectRejects(world.core.update(world.thing('a', 0), { currentVersion: stale }), { code: 'Conflict', reason: 'version' });
          current = await world.core.update(current);
        }
        stale = current.metadata.version;
        seen.add(stale);
        await world.core.destroy(world.pointer('a'));
      }
    },
  },
  {
    name: 'versions: the version is the revision of the last write, and every write takes one',
    needs: ['globalRevision'],
    async run(world) {
      const revisionOf = (resource: Resource): number => Number(resource.metadata.version);
      const a = await world.create('a');
      const start = revisionOf(a);
      const b = await world.core.create(world.thing('b', 1, {}, world.otherKind));
      assert.equal(revisionOf(b), start + 1, 'one revision over all kinds');
      await expectRejects(world.create('a'), { code: 'Conflict' });
      await expectRejects(world.core.destroy(world.pointer('missing')), { code: 'NotFound' });
      await expectRejects(world.core.update(world.thing('a'), { currentVersion: '0' }), { code: 'Conflict' });
      assert.equal(revisionOf(await world.core.update(a)), start + 2, 'a refused write takes no revision');
      await world.core.destroy(world.pointer('a'));
      assert.equal(revisionOf(await world.create('a')), start + 4, 'a destroy takes a revision');
    },
  },
];
