import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { openDatabase } from '../../src/backends/sqlite/driver.ts';
import { StoreFailure } from '../../src/backends/sqlite/failures.ts';
import { PackedRows } from '../../src/backends/sqlite/packed-rows.ts';
import type { WriteMessage } from '../../src/backends/sqlite/protocol.ts';
import { StoreFile } from '../../src/backends/sqlite/store-file.ts';
import type { Kind } from '../../src/resource/index.ts';
import { kind, openRequest } from '../sqlite-world.ts';

const other: Kind = { namespace: 'äöü', type: 'Others.example.dev' };

/** What is looked for before all is read; the last one was destroyed, and is nowhere. */
const pointers = ['a', 'n1', 'long', 'n0'].map((id) => ({ ...kind, id })).concat({ ...other, id: 'ü/b' });

/** What a store consists of on disk; absent: there is no such file. */
export interface StoreFiles {
  readonly main: Buffer;
  readonly wal?: Buffer | undefined;
  readonly holder?: Buffer | undefined;
}

export type Verdict = 'refused' | 'right' | `wrong: ${string}`;

/** What a damaged store tells; absent `refused`: everything. */
type Found = { readonly early: readonly string[] } & (
  | { readonly opened?: string; readonly refused: string }
  | { readonly opened: string; readonly written: string; readonly refused?: undefined }
);

const ends = { main: '', wal: '-wal', holder: '-holder' } as const;

/** Opens damaged stores, thousands of them, in memory where the system has a folder there. */
export class DamageBench implements Disposable {
  readonly #folder = mkdtempSync(join(existsSync('/dev/shm') ? '/dev/shm' : tmpdir(), 'steadystate-damage-'));
  #attempts = 0;

  [Symbol.dispose](): void {
    rmSync(this.#folder, { recursive: true, force: true });
  }

  /** A small store with every kind of row; its pages have 512 bytes, so that there is little of everything. `crashed`: as a kill leaves it. */
  make(how: 'closed' | 'crashed', rows: number): StoreFiles {
    const file = join(this.#folder, `made-${how}.db`);
    const empty = openDatabase(file);
    empty.exec('PRAGMA page_size = 512; PRAGMA auto_vacuum = INCREMENTAL; VACUUM');
    empty.close();
    const store = open(file);
    let revision = 0;
    const create = (id: string, record: string, of = kind): WriteMessage => ({
      kind: of,
      id,
      revision: ++revision,
      uid: revision,
      oldVersion: null,
      record,
    });
    const change = (id: string, uid: number, oldVersion: number, record: string | null): WriteMessage => ({
      ...create(id, ''),
      uid,
      oldVersion,
      record,
    });
    store.commit([create('a', '["first"]'), create('ü/b', '["second"]', other)], 1000);
    store.commit([change('a', 1, 1, '["third"]'), change('a', 1, 3, null), create('a', '["fifth"]')], 2000);
    store.commit(
      Array.from({ length: rows }, (_, index) => create(`n${index}`, `["${String(index).repeat(40)}"]`)),
      3000,
    );
    // A page or two that nobody uses any more.
    store.commit([change('n0', 6, 6, null), create('long', JSON.stringify(['y'.repeat(700)]))], 4000);
    store.noteCommitted();
    const read = (end: string): Buffer | undefined => (existsSync(`${file}${end}`) ? readFileSync(`${file}${end}`) : undefined);
    const crashed = { main: readFileSync(file), wal: read('-wal'), holder: read('-holder') };
    store.close();
    const closed = { main: readFileSync(file) };
    return how === 'closed' ? closed : crashed;
  }

  /** Everything that can be read from a store that is not damaged, after a write too. */
  expected(files: StoreFiles): readonly [opened: string, written: string] {
    const found = this.#read(files);
    if (found.refused !== undefined) throw new Error(`the store is refused before it is damaged: ${found.refused}`);
    if (found.early.length !== pointers.length - 1) throw new Error(`found early: ${found.early.join()}`);
    return [found.opened, found.written];
  }

  /** A damaged store must be refused, or be right in all that can be read, and stay so when it is written to. */
  async verdict(files: StoreFiles, [opened, written]: readonly [string, string]): Promise<Verdict> {
    // What a refused file left behind in the library is freed between turns only.
    if (this.#attempts % 64 === 0) await new Promise((resolve) => setImmediate(resolve));
    const found = this.#read(files);
    const early = found.early.filter((row) => !opened.includes(row));
    if (early.length > 0) return `wrong: a get before all is read answers ${early.join()}`;
    if (found.opened !== undefined && found.opened !== opened) return `wrong: ${found.opened}`;
    if (found.refused !== undefined)
      return found.refused === 'Corrupt' || found.refused === 'Unsupported' ? 'refused' : `wrong: ${found.refused}`;
    return found.written === written ? 'right' : `wrong: after a write ${found.written}`;
  }

  #read(files: StoreFiles): Found {
    // A name of its own for each: the library may keep a refused one open.
    const file = join(this.#folder, `${this.#attempts++}.db`);
    for (const [part, end] of Object.entries(ends)) {
      const bytes = files[part as keyof StoreFiles];
      if (bytes !== undefined) writeFileSync(`${file}${end}`, bytes);
    }
    let store: StoreFile | undefined;
    let opened: string | undefined;
    let early: readonly string[] = [];
    try {
      store = open(file);
      early = foundEarly(store);
      opened = contents(store);
      const { revision } = store.opened;
      const write = {
        kind,
        id: 'written',
        revision: revision + 1,
        uid: revision + 1,
        oldVersion: null,
        record: JSON.stringify(['z'.repeat(900)]),
      };
      store.commit([write], 5000);
      store.close();
      store = open(file);
      return { early, opened, written: contents(store) };
    } catch (error) {
      const refused = error instanceof StoreFailure ? error.failure.code : String(error);
      return { early, refused, ...(opened !== undefined && { opened }) };
    } finally {
      try {
        store?.close();
      } catch {
        // It was refused already.
      }
      for (const end of ['', '-wal', '-shm', '-journal', '-holder', '-reserve']) rmSync(`${file}${end}`, { force: true });
    }
  }
}

function open(file: string): StoreFile {
  return new StoreFile(openRequest(file));
}

/** What gets are answered with before all is read, as it stands in the contents. What is not found they wait for. */
function foundEarly(store: StoreFile): readonly string[] {
  try {
    return store
      .find(pointers)
      .map(({ pointer: { namespace, type, id }, uid, version, record }) => JSON.stringify([{ namespace, type }, id, uid, version, record]));
  } catch (error) {
    if (error instanceof StoreFailure) return [];
    throw error;
  }
}

function contents(store: StoreFile): string {
  const rows: unknown[] = [];
  const kindOf = new Map<number, Kind>();
  for (const { kinds, bytes } of store.load()) {
    for (const [number, of] of kinds) kindOf.set(number, of);
    const packed = new PackedRows(bytes);
    while (packed.next()) rows.push([kindOf.get(packed.kind), packed.id, packed.uid, packed.version, packed.record]);
  }
  const { storeId, revision, historyFloor } = store.opened;
  return JSON.stringify([storeId, revision, rows, [kind, other].map((of) => store.history(of, historyFloor, revision))]);
}

/** Bytes with one of them changed. */
export function flipped(bytes: Buffer, place: number, mask: number): Buffer {
  const changed = Buffer.from(bytes);
  changed[place] = (changed[place] as number) ^ mask;
  return changed;
}
