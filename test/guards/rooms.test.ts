import { existsSync, readFileSync } from 'node:fs';
import { dirname, join, posix } from 'node:path';
import { describe, expect, test } from 'vitest';
import { overrides, pureModules, reach, roomOf, rooms, writtenByHand } from '../../scripts/rooms.mjs';
import type { Import } from './imports.ts';
import { importsOf } from './imports.ts';
import type { Source } from './sources.ts';
import { parseSource, root, sources } from './sources.ts';

const packageJson = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as {
  readonly dependencies: Readonly<Record<string, string>>;
  readonly peerDependencies: Readonly<Record<string, string>>;
};

/** What is wrong with the imports of a file, one line each. */
function complaints(source: Source): readonly string[] {
  const path = source.path.slice('src/'.length);
  const room = roomOf(path);
  if (room === undefined) return [`${source.path} stands in no room of scripts/rooms.mjs`];
  return importsOf(source).flatMap((found) => {
    const complaint = complain(path, room, found);
    return complaint === undefined ? [] : [`${found.place} ${complaint}`];
  });
}

function complain(path: string, room: string, { specifier, typeOnly }: Import): string | undefined {
  const isTest = path.endsWith('.test.ts');
  if (specifier === undefined) return room === 'cli' ? undefined : 'imports something computed';
  if (specifier.startsWith('.')) return complainOfFile(path, room, isTest, posix.join(dirname(path), specifier));
  if (isTest) return undefined;
  if (specifier.startsWith('node:')) {
    const free = [...pureModules, 'node:crypto', ...(rooms[room]?.modules ?? [])];
    const mayTouchTheWorld = rooms[room]?.ambient !== undefined || typeOnly;
    return mayTouchTheWorld || free.includes(specifier) ? undefined : `imports ${specifier}: ask the Environment`;
  }
  const name = specifier.split('/', specifier.startsWith('@') ? 2 : 1).join('/');
  if (!rooms[room]?.packages?.includes(name)) return `imports ${name}, which is not a package of ${room} (scripts/rooms.mjs)`;
  if (packageJson.dependencies[name] === undefined && packageJson.peerDependencies[name] === undefined) {
    return `imports ${name}, which is not among the dependencies`;
  }
  return undefined;
}

function complainOfFile(path: string, room: string, isTest: boolean, target: string): string | undefined {
  if (target.startsWith('..')) return isTest ? undefined : `imports ${target}, outside src`;
  if (!target.endsWith('.ts')) return `imports ${target} without the extension .ts`;
  if (!existsSync(join(root, 'src', target))) return `imports ${target}, which does not exist`;
  const other = roomOf(target);
  if (other === undefined) return `imports ${target}, which stands in no room`;
  if (other === room || rooms[room]?.partOf === other) return undefined;
  const face = other === '.' ? 'index.ts' : `${other}/index.ts`;
  if (target !== face) return `imports ${target}: reach no further than ${face}`;
  if (isTest || (rooms[other]?.partOf === room && path === `${room}/index.ts`)) return undefined;
  return reach(room).includes(other) ? undefined : `imports ${target}: ${room} may not know ${other}`;
}

describe('the rooms', () => {
  test('import downward only, and faces only', () => {
    expect(sources('src').flatMap(complaints)).toEqual([]);
  });

  test('stand in the table, each with a face', () => {
    const used = new Set(sources('src').map(({ path }) => roomOf(path.slice('src/'.length))));
    for (const room of used) expect(existsSync(join(root, 'src', room ?? '?', 'index.ts')), `src/${room}/index.ts`).toBe(true);
  });

  test('have no circle', () => {
    for (const room of Object.keys(rooms)) {
      for (const other of rooms[room]?.knows ?? []) expect(reach(other), `${other} knows ${room}`).not.toContain(room);
    }
  });

  test('are the ones in biome.json', () => {
    const config = JSON.parse(readFileSync(join(root, 'biome.json'), 'utf8')) as { readonly overrides: readonly unknown[] };
    expect(config.overrides.slice(writtenByHand), 'run: node scripts/rooms.mjs').toEqual(overrides());
  });

  test('are guarded against every way to import', () => {
    const bad = [
      "import type { State } from '../state/index.ts';",
      "export * from '../state/index.ts';",
      "export { draft } from '../resource/draft.ts';",
      "const late = await import('../runtime/index.ts');",
      'const computed = await import(String(1));',
      "type Far = import('../state/index.ts').State;",
      "import { readFile } from 'node:fs/promises';",
      "import { parse } from 'yaml';",
      "import { nodeClock } from '../environment/node-clock.ts';",
      "import { Heap } from './heap.js';",
    ];
    for (const line of bad) expect(complaints(parseSource('src/queue/made-up.ts', line)), line).toHaveLength(1);
    const good = "import type { Environment } from '../environment/index.ts';\nimport { Heap } from './heap.ts';";
    expect(complaints(parseSource('src/queue/made-up.ts', good))).toEqual([]);
  });
});
