// @ts-check
// Runs the programs of this folder: they are built once, outside the tree, and each measured round is a process of its own.
import { spawn, spawnSync } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const folder = dirname(fileURLToPath(import.meta.url));
const cache = join(folder, '..', '..', '.cache', 'bench');
/** The program that holds the workloads in Go, once it is built. */
export const goProgram = join(cache, 'peers');

/** @type {{ readonly missing: string | undefined } | undefined} */
let built;

/** Builds the Go programs; why they cannot be had, where they cannot. */
export function missingGo() {
  if (built === undefined) {
    mkdirSync(cache, { recursive: true });
    const { error, status, stderr } = spawnSync('go', ['build', '-C', folder, '-o', goProgram, '.'], { encoding: 'utf8' });
    if (error !== undefined) built = { missing: 'Go is not installed' };
    else built = { missing: status === 0 ? undefined : `the peers in Go do not build: ${stderr.trim().split('\n').at(-1)}` };
  }
  return built.missing;
}

/**
 * One run of a workload in Go. `options` become its flags.
 * @param {string} name
 * @param {Readonly<Record<string, string | number | boolean>>} options
 */
export const runGo = (name, options = {}) => runWorkload(goProgram, [name], options);

/**
 * Runs a program that prints one line of JSON, each part of the workload with what it took.
 * @param {string} command
 * @param {readonly string[]} args
 * @param {Readonly<Record<string, string | number | boolean>>} options
 * @returns {Promise<import('../scenario.d.mts').Parts>}
 */
export async function runWorkload(command, args, options) {
  const flags = Object.entries(options).map(([name, value]) => `--${name}=${value}`);
  const child = spawn(command, [...args, ...flags], { stdio: ['ignore', 'pipe', 'inherit'] });
  let output = '';
  child.stdout.setEncoding('utf8').on('data', (text) => {
    output += text;
  });
  const status = await new Promise((resolve, reject) => {
    child.on('error', reject);
    child.on('close', (code, signal) => resolve(signal ?? code));
  });
  if (status !== 0) throw new Error(`${[command, ...args, ...flags].join(' ')} ended with ${status}`);
  /** @type {Record<string, { operations: number, nanoseconds: number, cpuNanoseconds: number, bytes?: number }>} */
  const measured = JSON.parse(output);
  const parts = Object.entries(measured).map(([part, { operations, nanoseconds, cpuNanoseconds, bytes }]) => [
    part,
    bytes === undefined ? { operations, elapsedMs: nanoseconds / 1e6, cpuMs: cpuNanoseconds / 1e6 } : { bytes },
  ]);
  return { parts: Object.fromEntries(parts) };
}
