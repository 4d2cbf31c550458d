import type { ChildProcess } from 'node:child_process';
import { spawn } from 'node:child_process';
import { addAbortListener } from 'node:events';
import { constants } from 'node:fs';
import { access, open as openFile, readFile, stat } from 'node:fs/promises';
import { delimiter, isAbsolute, join, resolve as resolvePath } from 'node:path';
import type { Writable } from 'node:stream';
import type { OpenCounter } from './open-counter.ts';
import { linuxProcessTable, psProcessTable } from './process-table.ts';
import type { GatedProcess, ProcessExit, ProcessIdentity, ProcessPort, SpawnRequest } from './processes.ts';

const outputLimit = 64 * 1024;

/** Waits for a line on descriptor 3; without one (the starter is gone) it exits 75. Then it becomes the program. */
const gate = 'read -r go <&3 || exit 75; exec 3<&-; exec "$@"';

/** The machine's processes. */
export function nodeProcesses(open: OpenCounter, platform: NodeJS.Platform = process.platform): ProcessPort {
  const table = platform === 'linux' ? linuxProcessTable : psProcessTable;
  let boot: Promise<string> | undefined;
  const bootId = (): Promise<string> => {
    boot ??= table.bootId();
    return boot;
  };

  const identify = async (pid: number): Promise<ProcessIdentity | undefined> => {
    const row = await table.row(pid);
    return row === undefined || row.zombie ? undefined : { pid, startTime: row.startTime, bootId: await bootId() };
  };

  const group = async (leader: ProcessIdentity): Promise<readonly number[]> => {
    if (leader.bootId !== (await bootId())) return [];
    const rows = await table.rows();
    const present = rows.find((row) => row.pid === leader.pid);
    // The number names a group of somebody else once another process has it: a number in use as a group is not given out again.
    if (present !== undefined && present.startTime !== leader.startTime) return [];
    return rows.filter((row) => row.group === leader.pid && !row.zombie).map((row) => row.pid);
  };

  return {
    bootId,
    identify,
    group,
    async inspect(identity) {
      if (identity.bootId !== (await bootId())) return 'gone';
      const row = await table.row(identity.pid);
      return row === undefined || row.zombie || row.startTime !== identity.startTime ? 'gone' : 'running';
    },
    async signalGroup(leader, signal) {
      if ((await group(leader)).length === 0) return false;
      return kill(-leader.pid, signal);
    },
    async spawnGated(request) {
      await checkDirectory(request.directory);
      const output = await openFile(request.outputFile, 'a', 0o600);
      const tracked = open.track('child');
      let child: ChildProcess;
      try {
        child = spawn('/bin/sh', ['-c', gate, request.command[0], ...request.command], {
          cwd: request.directory,
          env: request.environment,
          // A session, and so a group, of its own: signals reach all of it, and a terminal's Ctrl-C none of it.
          detached: true,
          stdio: ['ignore', output.fd, output.fd, 'pipe'],
        });
        await started(child);
      } catch (error) {
        tracked[Symbol.dispose]();
        throw error;
      } finally {
        await output.close();
      }
      return gated(child, tracked, await identify(child.pid as number), await bootId());
    },
    run: (request) => runToEnd(open, request),
    diagnose,
    inherited: () => inheritedEnvironment(process.env),
  };
}

async function checkDirectory(directory: string): Promise<void> {
  const found = await stat(directory).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT')
      throw Object.assign(new Error(`the folder ${directory} does not exist`), { code: 'ENOENT', path: directory });
    throw error;
  });
  if (!found.isDirectory()) throw Object.assign(new Error(`${directory} is not a folder`), { code: 'ENOTDIR', path: directory });
}

function started(child: ChildProcess): Promise<void> {
  return new Promise((resolve, reject) => {
    child.once('spawn', resolve);
    child.once('error', reject);
  });
}

function gated(child: ChildProcess, tracked: Disposable, identity: ProcessIdentity | undefined, bootId: string): GatedProcess {
  const pipe = child.stdio[3] as Writable;
  // The child may be gone before the byte arrives; its exit tells, the broken pipe does not have to.
  pipe.on('error', () => {});
  const exited = new Promise<ProcessExit>((resolve) => {
    const settle = (code: number | null, signal: NodeJS.Signals | null): void => {
      pipe.destroy();
      tracked[Symbol.dispose]();
      resolve({ ...(code !== null && { code }), ...(signal !== null && { signal }) });
    };
    if (child.exitCode !== null || child.signalCode !== null) settle(child.exitCode, child.signalCode);
    else child.once('exit', settle);
  });
  // A program that ends must not wait for the processes that it keeps.
  child.unref();
  return {
    identity: identity ?? { pid: child.pid as number, startTime: 'gone', bootId },
    exited,
    release: () =>
      new Promise((resolve) => {
        pipe.end('go\n', () => resolve());
        pipe.once('error', () => resolve());
        pipe.once('close', () => resolve());
      }),
    async abandon() {
      pipe.destroy();
      await exited;
    },
  };
}

/** `false` when nobody is there. */
function kill(target: number, signal: NodeJS.Signals): boolean {
  try {
    process.kill(target, signal);
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ESRCH') return false;
    throw error;
  }
}

async function runToEnd(open: OpenCounter, request: Parameters<ProcessPort['run']>[0]): ReturnType<ProcessPort['run']> {
  request.signal?.throwIfAborted();
  await checkDirectory(request.directory);
  const [program, ...rest] = request.command;
  const child = spawn(program, rest, {
    cwd: request.directory,
    env: request.environment,
    detached: true,
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  await started(child);
  using _tracked = open.track('child');
  const chunks: Buffer[] = [];
  let size = 0;
  const collect = (chunk: Buffer): void => {
    if (size < outputLimit) chunks.push(chunk);
    size += chunk.length;
  };
  child.stdout?.on('data', collect);
  child.stderr?.on('data', collect);
  let timedOut = false;
  const killAll = (): void => void kill(-(child.pid as number), 'SIGKILL');
  const timer = setTimeout(() => {
    timedOut = true;
    killAll();
  }, request.limitMs);
  const listener = request.signal && addAbortListener(request.signal, killAll);
  try {
    const exit = await new Promise<ProcessExit>((resolve) => {
      child.once('exit', (code, signal) => resolve({ ...(code !== null && { code }), ...(signal !== null && { signal }) }));
    });
    // What the command left behind in its group would keep the pipes open.
    killAll();
    await new Promise<void>((resolve) => {
      if (child.stdout?.closed && child.stderr?.closed) resolve();
      else child.once('close', () => resolve());
    });
    request.signal?.throwIfAborted();
    return { ...exit, output: Buffer.concat(chunks).subarray(0, outputLimit).toString('utf8'), timedOut };
  } finally {
    clearTimeout(timer);
    listener?.[Symbol.dispose]();
  }
}

async function diagnose({ command: [program], directory, environment }: SpawnRequest): Promise<string | undefined> {
  try {
    await checkDirectory(directory);
  } catch (error) {
    return (error as Error).message;
  }
  const path = await findProgram(program, directory, environment.PATH ?? '');
  if (path === undefined) {
    return program.includes('/')
      ? `the program ${program} does not exist`
      : `the program ${program} was not found in PATH (${environment.PATH ?? 'unset'})`;
  }
  const found = await stat(path);
  if (found.isDirectory()) return `${path} is a folder, not a program`;
  if (!(await executable(path))) return `${path} may not be executed: it has no execute bit (chmod +x)`;
  const interpreter = /^#!\s*(\S+)/.exec((await readFile(path)).subarray(0, 256).toString('latin1'))?.[1];
  if (interpreter !== undefined && !(await exists(interpreter))) return `the interpreter ${interpreter} of ${path} does not exist`;
  return undefined;
}

async function findProgram(program: string, directory: string, searchPath: string): Promise<string | undefined> {
  if (program.includes('/')) {
    const path = isAbsolute(program) ? program : resolvePath(directory, program);
    return (await exists(path)) ? path : undefined;
  }
  let unusable: string | undefined;
  for (const folder of searchPath.split(delimiter)) {
    const path = join(folder === '' ? directory : resolvePath(directory, folder), program);
    if (!(await exists(path))) continue;
    if (await executable(path)) return path;
    unusable ??= path;
  }
  return unusable;
}

async function exists(path: string): Promise<boolean> {
  return access(path).then(
    () => true,
    () => false,
  );
}

async function executable(path: string): Promise<boolean> {
  return access(path, constants.X_OK).then(
    () => true,
    () => false,
  );
}

function inheritedEnvironment(from: NodeJS.ProcessEnv): Readonly<Record<string, string>> {
  const names = ['PATH', 'HOME', 'USER', 'LOGNAME', 'SHELL', 'LANG', 'LC_ALL', 'LC_CTYPE', 'TZ', 'TMPDIR'];
  return Object.fromEntries(names.filter((name) => from[name] !== undefined).map((name) => [name, from[name] as string]));
}
