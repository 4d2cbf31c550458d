import type { EventPlace } from '../checksum.ts';
import { guard } from '../failures.ts';
import { destroyed } from '../schema.ts';
import type { KindRow } from '../store-file.ts';
import { nextReadable } from './check-rows.ts';
import type { Findings } from './findings.ts';
import type { Job } from './jobs.ts';
import type { NewStore } from './new-store.ts';
import type { RawFile } from './raw-file.ts';
import { readRaw } from './raw-rows.ts';
import type { ReadOnlyFile } from './read-only.ts';
import { readKinds } from './read-only.ts';
import type { StoredRow } from './rows.ts';
import { isIntact, readableRowsAfter, rowName } from './rows.ts';

/** What the store should hold. */
export interface Sums {
  readonly revision: number;
  readonly count: number;
  readonly digest: number;
}

interface Trace extends Pick<StoredRow, 'uid' | 'id' | 'version'> {
  readonly kind: KindRow | undefined;
}

/** Takes what is intact out of a damaged file into a new one. Every row that it takes has proven itself by its checksum. */
export class Salvage {
  readonly #copy: NewStore;
  readonly #dropped: Findings;
  #kinds: readonly KindRow[] = [];
  /** The newest event of each incarnation, where one is left. */
  readonly #last = new Map<number, Trace & { readonly gone: boolean }>();
  readonly #broken = new Map<number, Trace>();
  #sums: Sums | undefined;
  /** The newest revision that was seen anywhere. */
  newest = 0;
  /** Rows that SQLite does not reach. */
  recovered = 0;

  constructor(copy: NewStore, dropped: Findings, sums: Sums | undefined) {
    this.#copy = copy;
    this.#dropped = dropped;
    this.#sums = sums;
  }

  /** Nothing that is known of is missing, and nothing is there that should not be. */
  get complete(): boolean {
    const { count, digest } = this.#copy;
    return this.#sums !== undefined && this.#sums.count === count && this.#sums.digest === digest;
  }

  /** What SQLite can read, page after page around the damage. */
  *throughSqlite({ database }: ReadOnlyFile, file: string): Job<void> {
    try {
      this.#kinds = guard(file, () => readKinds(database));
    } catch {
      // They are looked for in the pages then.
    }
    const kinds = new Map(this.#kinds.map((row) => [row.number, row]));
    for (let after = 0; ; ) {
      const { rows, last, error } = readableRowsAfter(database, after);
      for (const row of rows) {
        after = row.uid;
        const kind = kinds.get(row.kind);
        if (kind !== undefined && isIntact(row, kind)) this.#take(row, kind);
        else this.#broken.set(row.uid, { ...row, kind });
      }
      if (error !== undefined) {
        const next = nextReadable(database, after, this.#sums?.revision ?? Number.MAX_SAFE_INTEGER);
        if (next === undefined) return;
        after = next - 1;
      }
      if (last) return;
      yield { step: 'reading resources', done: this.#copy.count, total: this.#sums?.count ?? 0 };
    }
  }

  /** What stands on the pages, whether or not anything leads to them. */
  throughPages(raw: RawFile): void {
    const found = new Map<number, readonly [StoredRow, KindRow]>();
    const kinds = new Map<number, KindRow>();
    let newest: EventPlace | undefined;
    readRaw(raw, this.#kinds, {
      kinds: (all) => {
        for (const kind of all) kinds.set(kind.number, kind);
      },
      resource: (row, kind) => {
        this.newest = Math.max(this.newest, row.version);
        if ((found.get(row.uid)?.[0].version ?? this.#copy.versionOf(row.uid) ?? 0) < row.version) found.set(row.uid, [row, kind]);
      },
      event: (place, kind) => {
        const { uid, id, revision, change } = place;
        if (revision > (newest?.revision ?? 0)) newest = place;
        if (revision > (this.#last.get(uid)?.version ?? 0))
          this.#last.set(uid, { uid, id, kind, version: revision, gone: change === destroyed });
      },
      broken: (row) => {
        if (!this.#broken.has(row.uid)) this.#broken.set(row.uid, { ...row, kind: kinds.get(row.kind) });
      },
    });
    if (newest !== undefined && newest.revision >= (this.#sums?.revision ?? 0)) this.#sums = newest;
    this.newest = Math.max(this.newest, newest?.revision ?? 0);
    for (const [uid, [row, kind]] of found) {
      const last = this.#last.get(uid);
      // It was changed or destroyed after this, which an older page does not know.
      if (last !== undefined && last.version > row.version) continue;
      if (this.#copy.versionOf(uid) === undefined) this.recovered++;
      this.#copy.kind(kind);
      this.#copy.set(uid, row);
    }
    for (const { uid, version, gone } of this.#last.values())
      if (gone && (this.#copy.versionOf(uid) ?? version) < version) this.#copy.set(uid, undefined);
  }

  /** Says what could not be taken; answers how many more there were whose names nobody knows. */
  tell(): number {
    for (const { uid, kind, id } of this.#copy.dropTwice())
      this.#dropped.add(rowName({ id, uid }, this.#kindOf(kind)), `an earlier incarnation (uid ${uid}) stood beside the present one`);
    let named = 0;
    for (const trace of [...this.#last.values(), ...this.#broken.values()]) {
      const { uid, version } = trace;
      const kept = this.#copy.versionOf(uid);
      const last = this.#last.get(uid);
      if (last?.gone === true || (last !== undefined && last !== trace)) continue;
      if (kept === undefined) {
        named++;
        this.#dropped.add(
          rowName(trace, trace.kind),
          `dropped: its record (uid ${uid}, version ${version}) cannot be read, or does not match its checksum`,
        );
      } else if (last !== undefined && kept < version)
        this.#dropped.add(rowName(trace, trace.kind), `kept as it was at version ${kept}: its version ${version} is lost`);
    }
    const { count = this.#copy.count } = this.#sums ?? {};
    if (this.#copy.count > count)
      this.#dropped.add(
        'resources',
        `${this.#copy.count} are kept, though ${count} should be there: some may be back that had been destroyed`,
      );
    return Math.max(0, count - this.#copy.count - named);
  }

  #take(row: StoredRow, kind: KindRow): void {
    this.newest = Math.max(this.newest, row.version);
    this.#copy.kind(kind);
    this.#copy.add(row);
  }

  #kindOf(number: number): KindRow | undefined {
    return this.#kinds.find((row) => row.number === number);
  }
}
