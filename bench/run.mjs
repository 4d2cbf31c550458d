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
    full: { type: 'boolean' },
    list: { type: 'boolean' },
    json: { type: 'boolean' },
    help: { type: 'boolean' },
    // How this program calls itself for one scenario.
    file: { type: 'string' },
    name: { type: 'string' },
  },
});

if (options.help) {
  console.log(`npm run bench -- [--only PART-OF-A-NAME]... [--full] [--rounds N] [--list] [--json]`);
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
    for (const { name, full = false, missing } of await load(file)) {
      if (options.only !== undefined && !options.only.some((part) => name.includes(part))) continue;
      if (options.list) {
        console.log(full ? `${name} (--full)` : name);
        continue;
      }
      if (full && !options.full) continue;
      const skipped = missing?.();
      if (skipped !== undefined) {
        results.push({ name, skipped });
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

async function measure({ name, ours, peer, rounds = 5, warmUp = true }) {
  const count = Number(options.rounds ?? rounds);
  const answers = { ours: [], peer: [] };
  // One round more, first, that warms up and does not count.
  for (let round = warmUp ? -1 : 0; round < count; round++) {
    const order = round % 2 === 0 ? ['ours', 'peer'] : ['peer', 'ours'];
    for (const who of order) {
      const side = who === 'ours' ? ours : peer;
      if (side === undefined) continue;
      const parts = await once(side);
      if (round >= 0) answers[who].push(parts);
    }
  }
  const parts = Object.keys(answers.ours[0]).map((part) => compare(part, ours, peer, answers));
  return { name, parts };
}

/** The parts of one round; a side without parts has one without a name. */
async function once(side) {
  const context = await side.prepare?.();
  globalThis.gc?.();
  const start = performance.now();
  const answer = await side.run(context);
  const elapsedMs = performance.now() - start;
  await side.clean?.(context);
  const parts = typeof answer === 'number' ? { '': { operations: answer, elapsedMs } } : (answer.parts ?? { '': answer });
  for (const [part, { operations, bytes }] of Object.entries(parts))
    if (!(operations > 0 || bytes > 0)) throw new Error(`${side.name} did nothing${part && ` in ${part}`}`);
  return parts;
}

function compare(part, ours, peer, answers) {
  const of = (who) => answers[who].map((parts) => parts[part]);
  const result = { part, ours: summary(ours, of('ours')) };
  if (peer === undefined || answers.peer[0][part] === undefined) return result;
  const ratio = (value) => median(of('ours').map((measured, round) => value(measured, of('peer')[round])));
  const both = [...of('ours'), ...of('peer')];
  return {
    ...result,
    peer: summary(peer, of('peer')),
    ratio: ratio((left, right) => (left.bytes === undefined ? perSecond(left) / perSecond(right) : left.bytes / right.bytes)),
    ...(both.every(({ cpuMs }) => cpuMs > 0) && {
      cpuRatio: ratio((left, right) => left.operations / left.cpuMs / (right.operations / right.cpuMs)),
    }),
  };
}

function perSecond({ operations, elapsedMs }) {
  return operations / (elapsedMs / 1000);
}

function summary({ name }, measured) {
  const sized = measured[0].bytes !== undefined;
  const values = measured.map((one) => (sized ? one.bytes : perSecond(one)));
  const middle = median(values);
  return { name, ...(sized ? { bytes: middle } : { perSecond: middle }), spread: (Math.max(...values) - Math.min(...values)) / middle };
}

function median(values) {
  const sorted = [...values].sort((left, right) => left - right);
  const half = sorted.length >> 1;
  return sorted.length % 2 === 1 ? sorted[half] : (sorted[half - 1] + sorted[half]) / 2;
}

function printTable(results) {
  const rows = [['scenario', 'ours', 'ops/s', '±', 'peer', 'ops/s', '±', 'ratio', 'by CPU']];
  for (const { name, parts, skipped, error } of results) {
    if (error !== undefined) rows.push([name, 'FAILED', '', '', '', '', '', '', '']);
    else if (skipped !== undefined) rows.push([name, `skipped: ${skipped}`, '', '', '', '', '', '', '']);
    for (const { part, ours, peer, ratio, cpuRatio } of parts ?? [])
      rows.push([part === '' ? name : `${name} ${part}`, ...cells(ours), ...cells(peer), times(ratio), times(cpuRatio)]);
  }
  const widths = rows[0].map((_, column) => Math.max(...rows.map((row) => row[column].length)));
  const right = new Set([2, 3, 5, 6, 7, 8]);
  for (const row of rows) {
    const line = row.map((cell, column) => (right.has(column) ? cell.padStart(widths[column]) : cell.padEnd(widths[column])));
    console.log(line.join('  ').trimEnd());
  }
  console.log(`\nNode ${process.versions.node}, ${cpus().length} × ${cpus()[0]?.model.trim() ?? 'unknown'}`);
  for (const { name, error } of results) if (error !== undefined) console.error(`\n${name}: ${error}`);
}

function times(ratio) {
  return ratio === undefined ? '' : `${ratio.toFixed(2)}×`;
}

function cells(side) {
  if (side === undefined) return ['', '', ''];
  const { name, bytes, perSecond: rate, spread } = side;
  const value = bytes === undefined ? Math.round(rate).toLocaleString('en-US') : `${Math.round(bytes).toLocaleString('en-US')} B`;
  return [name, value, `${Math.round((spread / 2) * 100)} %`];
}
