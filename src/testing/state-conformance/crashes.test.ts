import { describe, expect, test } from 'vitest';
import type { CommitRecord, Committer } from '../../backends/broker/index.ts';
import { Broker } from '../../backends/broker/index.ts';
import { nodeEnvironment } from '../../environment/index.ts';
import type { Kind, Resource } from '../../resource/index.ts';
import { SteadystateError } from '../../resource/index.ts';
import type { CoreState } from '../../state/index.ts';
import { over } from './faulty-stores.ts';
import type { MakeStore } from './index.ts';
import { stateConformance } from './index.ts';

const environment = nodeEnvironment();
const capabilities = { globalRevision: true, incarnations: true, multiKindWatch: true, tailEvents: true, durableBookmarks: false };

interface DiskFaults {
  /** Acknowledges the newest this many writes before they are on the disk. */
  readonly early?: number;
  /** Shows a write before it is on the disk, and acknowledges it after. */
  readonly showsEarly?: boolean;
  /** Forgets the revisions of what was destroyed last. */
  readonly forgetsRevision?: boolean;
  /** Of writes that are acknowledged together the last one never reaches the disk. */
  readonly tornGroups?: boolean;
}

/** A disk in memory, whose syncs take some turns. */
class Disk {
  readonly #records: CommitRecord[] = [];
  readonly #faults: DiskFaults;
  #alive = 0;
  #flushing: Promise<void> = Promise.resolve();

  constructor(faults: DiskFaults) {
    this.#faults = faults;
  }

  /** What a store that opens now finds. */
  open(): Broker {
    const life = ++this.#alive;
    const found = new Map<string, { readonly kind: Kind; readonly id: string; readonly value: Resource }>();
    let revision = 0;
    for (const record of this.#records) {
      const { kind, id, value } = record;
      const key = JSON.stringify([kind.type, kind.namespace, id]);
      if (value === undefined) found.delete(key);
      else found.set(key, { kind, id, value });
      if (value !== undefined || this.#faults.forgetsRevision !== true) revision = record.revision;
    }
    const committer: Committer = {
      historyFloor: revision,
      history: async () => [],
      commit: (records) => this.#commit(records, life),
    };
    const broker = new Broker({ environment, storeId: environment.id(), capabilities, committer, revision });
    for (const { kind, id, value } of found.values()) broker.load(kind, id, { decode: () => value });
    return broker;
  }

  /** Nothing that is on its way arrives any more. */
  crash(): void {
    this.#alive++;
    this.#records.splice(this.#records.length - Math.min(this.#records.length, this.#faults.early ?? 0));
  }

  /** Resolves once everything that was shown is on the disk. */
  flushed(): Promise<void> {
    return this.#flushing;
  }

  #commit(records: readonly CommitRecord[], life: number): Promise<void> {
    const written = this.#write(records, life);
    if (this.#faults.showsEarly !== true) return written;
    this.#flushing = written;
    return Promise.resolve();
  }

  async #write(records: readonly CommitRecord[], life: number): Promise<void> {
    for (let turn = 0; turn < 2; turn++) {
      await environment.breathe();
      // The machine is off: its promises never settle.
      if (life !== this.#alive) await new Promise(() => {});
    }
    const torn = this.#faults.tornGroups === true && records.length > 1;
    this.#records.push(...(torn ? records.slice(0, -1) : records));
  }
}

/** A store whose writes are answered once the disk has them. */
function acknowledgedLate(core: CoreState, disk: Disk): CoreState {
  const late = async <Value>(write: Promise<Value>): Promise<Value> => {
    const value = await write;
    await disk.flushed();
    return value;
  };
  return over(core, {
    create: (resource, call) => late(core.create(resource, call)),
    update: (resource, call) => late(core.update(resource, call)),
    destroy: (pointer, call) => late(core.destroy(pointer, call)),
  });
}

const crashable =
  (faults: DiskFaults): MakeStore =>
  () => {
    const disk = new Disk(faults);
    let broker = disk.open();
    let core = acknowledgedLate(broker, disk);
    // What waits for the disk of a crashed store waits for ever: that one is not closed, but left.
    return {
      get core() {
        return core;
      },
      async crash() {
        disk.crash();
        broker.poison(new SteadystateError('Unavailable', 'the machine is off'));
        broker = disk.open();
        core = acknowledgedLate(broker, disk);
        return core;
      },
      [Symbol.asyncDispose]: () => broker[Symbol.asyncDispose](),
    };
  };

async function failuresOf(faults: DiskFaults, begin: string, crashRuns = 20): Promise<string[]> {
  const failures: string[] = [];
  const cases = stateConformance(crashable(faults), { environment, capabilities, crashes: true, crashRuns, seed: 1 });
  const found = cases.filter(({ name }) => name.startsWith(begin));
  expect(found.length).toBeGreaterThan(0);
  for (const { name, run } of found) await run().catch((error: unknown) => failures.push(`${name}: ${String(error)}`));
  return failures;
}

describe('crashes', () => {
  test('a store that keeps what it acknowledged passes', async () => {
    expect(await failuresOf({}, 'crash: ')).toEqual([]);
    expect(await failuresOf({}, 'generated: K4', 60)).toEqual([]);
  });

  test.each([
    ['a write is acknowledged before it is durable', { early: 1 }, 'crash: K4'],
    ['a read sees what a crash takes back', { early: 2 }, 'generated: K4'],
    ['what is not durable yet can be read', { showsEarly: true }, 'generated: K4'],
    ['the revision of a destroy is used again after a crash', { forgetsRevision: true }, 'crash: K4'],
    ['a part of what was acknowledged together is lost', { tornGroups: true }, 'crash: K4'],
  ])('the suite sees that %s', async (_name, faults, begin) => {
    expect(await failuresOf(faults, begin)).not.toEqual([]);
  });

  test('without the word of the caller nothing is crashed, and with it the store must offer it', async () => {
    const names = (crashes: boolean) => stateConformance(crashable({}), { environment, capabilities, crashes }).map(({ name }) => name);
    expect(names(false).filter((name) => /crash/.test(name))).toEqual([]);
    expect(names(true).filter((name) => /crash/.test(name))).toHaveLength(2);
    const dull: MakeStore = async (request) => {
      const { core, [Symbol.asyncDispose]: dispose } = await crashable({})(request);
      return { core, [Symbol.asyncDispose]: dispose };
    };
    const one = stateConformance(dull, { environment, capabilities, crashes: true }).find(({ name }) => name.startsWith('crash: '));
    await expect(one?.run()).rejects.toThrow('must offer crash');
  });
});
