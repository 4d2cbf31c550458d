import type { ChildProcess } from 'node:child_process';
import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { Judge } from './kill-judge.ts';

/** `npm run torture` asks for more. */
const kills = Number(process.env.STEADYSTATE_KILLS ?? 200);
const lanes = 2;
const historyLimit = 200;
const program = fileURLToPath(new URL('./kill-program.mjs', import.meta.url));

/** Started ahead: it waits for its first line before it touches anything. */
function spare(): ChildProcess {
  return spawn(process.execPath, [program], { stdio: ['pipe', 'pipe', 'inherit'] });
}

const pick = (count: number): number => Math.floor(Math.random() * count);

/** A line now and then, for who has asked for thousands of kills. */
const tellEvery = Number(process.env.STEADYSTATE_KILLS_TOLD ?? Number.POSITIVE_INFINITY);
const began = performance.now();
let killed = 0;

function noteKill(judges: readonly Judge[]): void {
  if (++killed % tellEvery !== 0) return;
  const minutes = (performance.now() - began) / 60_000;
  console.log(`${killed} of ${kills} kills in ${minutes.toFixed(1)} min, ${Math.round(killed / minutes)} a minute; ${summaryOf(judges)}`);
}

function summaryOf(judges: readonly Judge[]): string {
  const sum = (of: (judge: Judge) => number): number => judges.reduce((total, judge) => total + of(judge), 0);
  const [acknowledged, unheard, resumed] = [sum((one) => one.acknowledged), sum((one) => one.unheard), sum((one) => one.resumed)];
  return `${acknowledged} writes acknowledged, ${unheard} durable but unheard, ${resumed} bookmarks resumed, ${sum((one) => one.expired)} expired`;
}

/** One program after another on one store, each killed at some moment: while it opens, writes, or closes. */
async function torture(file: string, rounds: number, judge: Judge, onKill: () => void): Promise<void> {
  let next = spare();
  const running = new Set([next]);
  using _cleanup = {
    [Symbol.dispose]() {
      for (const child of running) child.kill('SIGKILL');
    },
  };
  for (let round = 0; round <= rounds; round++) {
    const child = next;
    if (round < rounds) running.add((next = spare()));
    const exited = new Promise((resolve) => child.once('close', resolve));
    // The newest, and one of some time ago, which may have expired.
    const bookmarks = [judge.bookmarks.at(-1), judge.bookmarks.at(-1 - pick(40))].filter((one) => one !== undefined);
    child.stdin?.on('error', () => {});
    child.stdin?.write(`${JSON.stringify({ file, historyLimit, round, bookmarks, check: round % 50 === 49 || round === rounds })}\n`);
    // The last one is let open in peace.
    const manner = round === rounds ? 'lines' : (['lines', 'lines', 'lines', 'open', 'close'] as const)[pick(5)];
    let left = round === rounds ? 1 : manner === 'lines' ? 1 + pick(250) : 1 + pick(40);
    const kill = (): void => void child.kill('SIGKILL');
    const timer = manner === 'open' ? setTimeout(kill, pick(60)) : undefined;
    if (child.stdout === null) throw new Error('no output');
    let checked = false;
    for await (const line of createInterface({ input: child.stdout })) {
      const report = judge.line(line);
      if (report !== undefined) {
        judge.check(report);
        checked = true;
      }
      if (--left !== 0) continue;
      if (manner === 'close') {
        child.stdin?.write('close\n');
        setTimeout(kill, pick(12));
      } else kill();
    }
    clearTimeout(timer);
    await exited;
    running.delete(child);
    if (round < rounds) onKill();
    if (!checked && manner !== 'open') throw new Error(`round ${round}: the program ended before it told what it found`);
  }
}

test(`nothing acknowledged is lost, nothing is half there, and no revision is used twice, in ${kills} kills`, async () => {
  const folder = mkdtempSync(join(tmpdir(), 'steadystate-kill-'));
  const judges = Array.from({ length: lanes }, () => new Judge(historyLimit));
  await Promise.all(
    judges.map((judge, lane) => torture(join(folder, `lane-${lane}.db`), Math.ceil(kills / lanes), judge, () => noteKill(judges))),
  );
  for (const judge of judges) {
    expect(judge.acknowledged).toBeGreaterThan(kills);
    // Kills that came between a commit and its acknowledgement: without them nothing was tested.
    if (kills >= 200) expect(judge.unheard).toBeGreaterThan(0);
    expect(judge.resumed).toBeGreaterThan(kills / 4);
    // So many it takes until a bookmark is old enough.
    if (kills >= 200) expect(judge.expired).toBeGreaterThan(0);
  }
  console.log(`${killed} kills: nothing lost; ${summaryOf(judges)}`);
  rmSync(folder, { recursive: true });
}, 21_600_000);
