// The benchmarks: one command, one table.
//
// A file in bench/scenarios/ exports `scenarios`, a list (bench/scenario.d.mts tells the shape). Each scenario runs in a
// process of its own; in it, our side and its peer take turns, round by round, so that whatever else the machine does
// hits both. The table shows medians, and what counts is the ratio: an absolute time means little on a shared machine.
import { spawn } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { cpus } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { parseArgs } from 'node:util';

const folder = join(dirname(fileURLToPath(import.meta.url)), 'scenarios');
const { values: options } = parseArgs({
  options: {
    only: { type: 'string', multiple: true },
    rounds: { type: 'string' },
    list: { type: 'boolean' },
    json: { type: 'boolean' },
    help: { type: 'boolean' },
    // How this program calls itself for one scenario.
    file: { type: 'string' },
    name: { type: 'string' },
  },
});

if (options.help) {
  console.log(`npm run bench -- [--only PART-OF-A-NAME]... [--rounds N] [--list] [--json]`);
} else if (options.file !== undefined) {
  await runOne(options.file, options.name);
} else {
  await runAll();
}

async function runAll() {
  const results = [];
  let failed = false;
  for (const file of readdirSync(folder)
    .filter((name) => name.endsWith('.mjs'))
    .sort()) {
    for (const { name } of await load(file)) {
      if (options.only !== undefined && !options.only.some((part) => name.includes(part))) continue;
      if (options.list) {
        console.log(name);
        continue;
      }
      if (process.stderr.isTTY) process.stderr.write(`${name} …\n`);
      const result = await runApart(file, name);
      if (result.error !== undefined) failed = true;
      results.push(result);
    }
  }
  if (options.list) return;
  if (options.json) console.log(JSON.stringify(results, undefined, 2));
  else printTable(results);
  if (failed) process.exitCode = 1;
}

async function load(file) {
  const { scenarios } = await import(pathToFileURL(join(folder, file)).href);
  return scenarios;
}

function runApart(file, name) {
  return new Promise((resolve) => {
    const self = fileURLToPath(import.meta.url);
    const rounds = options.rounds === undefined ? [] : ['--rounds', options.rounds];
    const child = spawn(process.execPath, ['--expose-gc', self, '--file', file, '--name', name, ...rounds], {
      stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
    });
    let result;
    child.on('message', (message) => {
      result = message;
    });
    child.on('error', (error) => resolve({ name, error: error.message }));
    child.on('exit', (code, signal) => resolve(result ?? { name, error: `ended with ${signal ?? code}` }));
  });
}

async function runOne(file, name) {
  const scenario = (await load(file)).find((found) => found.name === name);
  let answer;
  try {
    answer = await measure(scenario);
  } catch (error) {
    answer = { name, error: error instanceof Error ? (error.stack ?? error.message) : String(error) };
  }
  process.send(answer, () => process.exit(0));
}

async function measure({ name, ours, peer, rounds = 5 }) {
  const count = Number(options.rounds ?? rounds);
  const rates = { ours: [], peer: [] };
  // One round more, first, that warms up and does not count.
  for (let round = -1; round < count; round++) {
    const order = round % 2 === 0 ? ['ours', 'peer'] : ['peer', 'ours'];
    for (const who of order) {
      const side = who === 'ours' ? ours : peer;
      if (side === undefined) continue;
      const rate = await once(side);
      if (round >= 0) rates[who].push(rate);
    }
  }
  const result = { name, ours: summary(ours, rates.ours) };
  if (peer === undefined) return result;
  const ratios = rates.ours.map((rate, index) => rate / rates.peer[index]);
  return { ...result, peer: summary(peer, rates.peer), ratio: median(ratios) };
}

/** Operations a second. */
async function once(side) {
  const context = await side.prepare?.();
  globalThis.gc?.();
  const start = performance.now();
  const answer = await side.run(context);
  const whole = performance.now() - start;
  await side.clean?.(context);
  const { operations, elapsedMs } = typeof answer === 'number' ? { operations: answer, elapsedMs: whole } : answer;
  if (!(operations > 0)) throw new Error(`${side.name} did nothing`);
  return operations / (elapsedMs / 1000);
}

function summary(side, rates) {
  const middle = median(rates);
  return { name: side.name, perSecond: middle, spread: (Math.max(...rates) - Math.min(...rates)) / middle };
}

function median(values) {
  const sorted = [...values].sort((left, right) => left - right);
  const half = sorted.length >> 1;
  return sorted.length % 2 === 1 ? sorted[half] : (sorted[half - 1] + sorted[half]) / 2;
}

function printTable(results) {
  const rows = [['scenario', 'ours', 'ops/s', '±', 'peer', 'ops/s', '±', 'ratio']];
  for (const { name, ours, peer, ratio, error } of results) {
    if (error !== undefined) rows.push([name, 'FAILED', '', '', '', '', '', '']);
    else rows.push([name, ...cells(ours), ...cells(peer), ratio === undefined ? '' : `${ratio.toFixed(2)}×`]);
  }
  const widths = rows[0].map((_, column) => Math.max(...rows.map((row) => row[column].length)));
  const right = new Set([2, 3, 5, 6, 7]);
  for (const row of rows) {
    const line = row.map((cell, column) => (right.has(column) ? cell.padStart(widths[column]) : cell.padEnd(widths[column])));
    console.log(line.join('  ').trimEnd());
  }
  console.log(`\nNode ${process.versions.node}, ${cpus().length} × ${cpus()[0]?.model.trim() ?? 'unknown'}`);
  for (const { name, error } of results) if (error !== undefined) console.error(`\n${name}: ${error}`);
}

function cells(side) {
  if (side === undefined) return ['', '', ''];
  return [side.name, Math.round(side.perSecond).toLocaleString('en-US'), `${Math.round((side.spread / 2) * 100)} %`];
}
