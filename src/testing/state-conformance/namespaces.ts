import { strict as assert } from 'node:assert';
import { isUnsupportedError } from '../../resource/index.ts';
import { listNamespaces } from '../../state/index.ts';
import { brief } from './reader.ts';
import type { Case, World } from './world.ts';

/** Creates something of the type that the cases look for. */
async function createIn(world: World, namespace: string, id = 'a', type: string = world.kind.type): Promise<void> {
  await world.core.create(world.thing(id, { size: 1 }, {}, { namespace, type }));
}

function destroyIn(world: World, namespace: string, id = 'a'): Promise<void> {
  return world.core.destroy({ namespace, type: world.kind.type, id });
}

export const namespaceCases: readonly Case[] = [
  {
    name: 'watchNamespaces: those that have resources of the type, then each that gets its first or loses its last',
    async run(world) {
      if (world.core.watchNamespaces === undefined) {
        assert.ok(await listNamespaces(world.core, world.kind.type).then(() => false, isUnsupportedError));
        return;
      }
      await createIn(world, 'two');
      await createIn(world, 'one');
      await createIn(world, 'elsewhere', 'a', world.otherKind.type);
      const reader = await world.watchNamespaces(world.kind.type);
      // After the watch was established, and before anything of it was read: one that is empty by then need not be told.
      await createIn(world, 'three');
      const events = [...(await reader.take(3))];
      const begin = brief(events).includes('bootstrapped') ? events : [...events, ...(await reader.take(1))];
      assert.deepEqual(
        brief(begin).filter((text) => text !== 'created three'),
        ['created one', 'created two', 'bootstrapped'],
      );
      if (!brief(begin).includes('created three')) assert.deepEqual(brief(await reader.take(1)), ['created three']);
      await createIn(world, 'one', 'b');
      await createIn(world, '\u00fcml\u00e4ut/\u{1F642}');
      assert.deepEqual(brief(await reader.take(1)), ['created \u00fcml\u00e4ut/\u{1F642}']);
      await destroyIn(world, 'one');
      await destroyIn(world, 'two');
      assert.deepEqual(brief(await reader.take(1)), ['destroyed two']);
      await destroyIn(world, 'one', 'b');
      assert.deepEqual(brief(await reader.take(1)), ['destroyed one']);
      await createIn(world, 'two');
      assert.deepEqual(brief(await reader.take(1)), ['created two']);
      assert.deepEqual(await listNamespaces(world.core, world.kind.type), ['three', 'two', '\u00fcml\u00e4ut/\u{1F642}']);
    },
  },
  {
    name: 'watchNamespaces: a type without resources has none, and its watch ends with its signal',
    async run(world) {
      if (world.core.watchNamespaces === undefined) return;
      assert.deepEqual(await listNamespaces(world.core, world.kind.type), []);
      const stop = new AbortController();
      const reader = await world.watchNamespaces(world.kind.type, { signal: stop.signal });
      assert.deepEqual(brief(await reader.take(1)), ['bootstrapped']);
      stop.abort();
      await reader.expectEnd();
      // Looking alone makes no namespace.
      await world.core.list({ namespace: 'looked', type: world.kind.type });
      assert.deepEqual(await listNamespaces(world.core, world.kind.type), []);
    },
  },
  {
    name: 'watchNamespaces: after a restart the namespaces are those of what is stored',
    needs: ['durableBookmarks'],
    async run(world) {
      if (world.core.watchNamespaces === undefined) return;
      for (const namespace of ['kept', 'left']) await createIn(world, namespace);
      await destroyIn(world, 'left');
      await world.reopen();
      assert.deepEqual(await listNamespaces(world.core, world.kind.type), ['kept']);
    },
  },
];
