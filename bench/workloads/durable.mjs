// @ts-check
import { mkdtempSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { nodeEnvironment } from 'steadystate';
import { openSqliteState } from 'steadystate/sqlite';
import { check, heapBytes, Measures } from './measure.mjs';
import { kind, makeThing, makeThings, pointerOf } from './things.mjs';

/** @param {string} file */
const open = (file) => openSqliteState({ file, environment: nodeEnvironment() });

/** @param {readonly bigint[]} waits @param {number} share */
const percentile = (waits, share) => Number(waits[Math.min(waits.length - 1, Math.floor(waits.length * share))]);

/**
 * Writers that take the next resource as soon as the last is acknowledged, and how long each waited.
 * @param {{ writers: number, size: number }} options
 */
export async function durableCreate({ writers, size }) {
  const folder = mkdtempSync(join(tmpdir(), 'steadystate-bench-'));
  const measures = new Measures();
  try {
    const state = await open(join(folder, 'state.db'));
    const things = makeThings('fields', size);
    /** @type {bigint[]} */
    const waits = [];
    await measures.time('create', size, async () => {
      let next = 0;
      const writer = async () => {
        for (let thing = things[next++]; thing !== undefined; thing = things[next++]) {
          const start = process.hrtime.bigint();
          await state.create(thing);
          waits.push(process.hrtime.bigint() - start);
        }
      };
      await Promise.all(Array.from({ length: writers }, writer));
    });
    check((await state.list(kind)).items.length === size, 'not all were created');
    waits.sort((left, right) => Number(left - right));
    measures.note('wait-p50', percentile(waits, 0.5));
    measures.note('wait-p99', percentile(waits, 0.99));
    await state[Symbol.asyncDispose]();
  } finally {
    rmSync(folder, { recursive: true });
  }
  return measures;
}

/**
 * How long a get takes, the turn of the event loop before it included, beside so many writers.
 * @param {{ writers: number, size: number }} options
 */
export async function readsBesideWrites({ writers, size }) {
  const folder = mkdtempSync(join(tmpdir(), 'steadystate-bench-'));
  const measures = new Measures();
  try {
    const state = await open(join(folder, 'state.db'));
    await state.create(makeThing('fields', 0));
    let reading = true;
    let written = 0;
    const writer = async () => {
      while (reading) {
        await state.create(makeThing('fields', ++written));
      }
    };
    const writing = Promise.all(Array.from({ length: writers }, writer));
    /** @type {bigint[]} */
    const waits = [];
    for (let read = 0; read < size; read++) {
      const start = process.hrtime.bigint();
      await new Promise((resolve) => setImmediate(resolve));
      await state.get(pointerOf(0));
      waits.push(process.hrtime.bigint() - start);
    }
    reading = false;
    await writing;
    check(writers === 0 || written > writers, 'nobody wrote');
    waits.sort((left, right) => Number(left - right));
    measures.note('get-p50', percentile(waits, 0.5));
    measures.note('get-p99', percentile(waits, 0.99));
    await state[Symbol.asyncDispose]();
  } finally {
    rmSync(folder, { recursive: true });
  }
  return measures;
}

/**
 * Opens a store that was filled before, up to the first get, to where it answers everything, and to a list of all.
 * @param {{ file: string, size: number }} options
 */
export async function durableOpen({ file, size }) {
  const measures = new Measures();
  const before = heapBytes();
  const start = process.hrtime.bigint();
  const since = (/** @type {string} */ part) => measures.note(part, Number(process.hrtime.bigint() - start));
  const state = await open(file);
  await state.get(pointerOf(size >> 1));
  since('first-get');
  await state.loaded;
  since('ready');
  const { items } = await state.list(kind);
  since('first-list');
  check(items.length === size, `${items.length} resources were found`);
  measures.parts.file = { operations: size, nanoseconds: 0, cpuNanoseconds: 0, bytes: statSync(file).size };
  measures.parts.heap = { operations: size, nanoseconds: 0, cpuNanoseconds: 0, bytes: heapBytes() - before };
  await state[Symbol.asyncDispose]();
  return measures;
}

/**
 * Makes the store that `durableOpen` opens. `killed`: it ends without closing it, by force.
 * @param {{ file: string, size: number, killed: boolean }} options
 */
export async function durableFill({ file, size, killed }) {
  const measures = new Measures();
  const state = await open(file);
  for (let from = 0; from < size; from += 5_000) {
    await Promise.all(Array.from({ length: Math.min(5_000, size - from) }, (_, index) => state.create(makeThing('fields', from + index))));
  }
  if (killed) process.kill(process.pid, 'SIGKILL');
  await state[Symbol.asyncDispose]();
  return measures;
}
