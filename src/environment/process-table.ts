import { execFile } from 'node:child_process';
import { readdir, readFile } from 'node:fs/promises';
import { promisify } from 'node:util';

const runFile = promisify(execFile);

/** One row of the machine's process table. */
export interface ProcessRow {
  readonly pid: number;
  readonly group: number;
  readonly startTime: string;
  /** Ended, and not yet reaped by its parent. */
  readonly zombie: boolean;
}

/** How a platform tells about its processes. */
export interface ProcessTable {
  bootId(): Promise<string>;
  row(pid: number): Promise<ProcessRow | undefined>;
  rows(): Promise<readonly ProcessRow[]>;
}

/** `/proc`: exact, start times in ticks since boot. */
export const linuxProcessTable: ProcessTable = {
  bootId: async () => (await readFile('/proc/sys/kernel/random/boot_id', 'utf8')).trim(),
  row: readStat,
  async rows() {
    const pids = (await readdir('/proc')).filter((name) => /^[0-9]+$/.test(name));
    const rows = await Promise.all(pids.map((pid) => readStat(Number(pid))));
    return rows.filter((row) => row !== undefined);
  },
};

async function readStat(pid: number): Promise<ProcessRow | undefined> {
  let text: string;
  try {
    text = await readFile(`/proc/${pid}/stat`, 'utf8');
  } catch (error) {
    // ESRCH: it ended between opening and reading.
    if (['ENOENT', 'ESRCH'].includes((error as NodeJS.ErrnoException).code ?? '')) return undefined;
    throw error;
  }
  // The name, in parentheses, may hold anything; what follows the last one is separated by spaces. First there: field 3.
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
  const [state = '', , group = ''] = fields;
  return { pid, group: Number(group), startTime: fields[19] ?? '', zombie: state === 'Z' || state === 'X' };
}

/** `ps`, for machines without `/proc`: start times to the second. */
export const psProcessTable: ProcessTable = {
  // The time of the boot would change when somebody sets the clock; the session's id does not.
  bootId: async () => (await runFile('sysctl', ['-n', 'kern.bootsessionuuid'])).stdout.trim(),
  row: async (pid) => (await ps(['-p', String(pid)]))[0],
  rows: () => ps(['-A']),
};

async function ps(selection: readonly string[]): Promise<readonly ProcessRow[]> {
  let stdout: string;
  try {
    ({ stdout } = await runFile('ps', [...selection, '-o', 'pid=,pgid=,state=,lstart='], { env: { ...process.env, LC_ALL: 'C' } }));
  } catch (error) {
    // ps exits 1 when nothing was selected.
    if ((error as { code?: unknown }).code === 1) return [];
    throw error;
  }
  return stdout
    .split('\n')
    .map((line) => /^\s*([0-9]+)\s+([0-9]+)\s+(\S+)\s+(.+?)\s*$/.exec(line))
    .filter((match) => match !== null)
    .map(([, pid = '', group = '', state = '', startTime = '']) => ({
      pid: Number(pid),
      group: Number(group),
      startTime,
      zombie: state.startsWith('Z'),
    }));
}

/**
 * Looks that many ask for at once, each made after it was asked for: who comes while one is under way shares the next one. A scan of
 * the table costs as much as there are processes, and a stop of all of them asks for each.
 */
export function sharedLook<Found>(look: () => Promise<Found>): () => Promise<Found> {
  let current: Promise<unknown> | undefined;
  let next: Promise<Found> | undefined;
  const begin = (): Promise<Found> => {
    const found = look();
    const ended = found
      .catch(() => {})
      .then(() => {
        if (current === ended) current = undefined;
      });
    current = ended;
    return found;
  };
  return () => {
    if (current === undefined) return begin();
    next ??= current.then(() => {
      next = undefined;
      return begin();
    });
    return next;
  };
}
