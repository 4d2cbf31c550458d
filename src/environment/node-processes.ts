import type { ChildProcess } from 'node:child_process';
import { spawn } from 'node:child_process';
import { open as openFile } from 'node:fs/promises';
import type { Writable } from 'node:stream';
import { checkDirectory, diagnose } from './diagnose-command.ts';
import type { OpenCounter } from './open-counter.ts';
import { linuxProcessTable, psProcessTable, sharedLook } from './process-table.ts';
import type { GatedProcess, ProcessExit, ProcessIdentity, ProcessPort, SpawnRequest } from './processes.ts';
import { runToEnd } from './run-command.ts';
import { exitOf, kill, started } from './spawned.ts';

/** Waits for a line on descriptor 3; without one (the starter is gone) it exits 75. Then it becomes the program. */
const gate = 'read -r go <&3 || exit 75; exec 3<&-; exec "$@"';

/** Variables that a shell makes its own, or would not hand on. They pass it by as arguments of `env`. */
const ofTheShell = ['IFS', 'LINENO', 'OPTIND', 'PPID', 'PS1', 'PS2', 'PS4', 'PWD', 'SHELLOPTS', 'SHLVL', 'UID', '_'];

/** The machine's processes. */
export function nodeProcesses(open: OpenCounter, platform: NodeJS.Platform = process.platform): ProcessPort {
  const table = platform === 'linux' ? linuxProcessTable : psProcessTable;
  const rowsNow = sharedLook(() => table.rows());
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
    const rows = await rowsNow();
    const present = rows.find((row) => row.pid === leader.pid);
    // The number names a group of somebody else once another process has it: a number in use as a group is not given out again.
    if (present !== undefined && present.startTime !== leader.startTime) return [];
    return rows.filter((row) => row.group === leader.pid && !row.zombie).map((row) => row.pid);
  };

  return {
    platform,
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
      const someone = kill(-leader.pid, signal);
      // One that was stopped (SIGSTOP, or by a terminal) would hear it only once it goes on, and then be killed unasked.
      if (someone && signal !== 'SIGKILL') kill(-leader.pid, 'SIGCONT');
      return someone;
    },
    async spawnGated(request) {
      await checkDirectory(request.directory);
      const output = await openFile(request.outputFile, 'a', 0o600);
      const tracked = open.track('child');
      let child: ChildProcess | undefined;
      try {
        child = spawn('/bin/sh', ['-c', gate, ...gatedCommand(request)], {
          cwd: request.directory,
          env: request.environment,
          // A session, and so a group, of its own: signals reach all of it, and a terminal's Ctrl-C none of it.
          detached: true,
          stdio: ['ignore', output.fd, output.fd, 'pipe'],
        });
        await started(child);
        const pid = child.pid as number;
        return gated(child, tracked, (await identify(pid)) ?? { pid, startTime: 'gone', bootId: await bootId() });
      } catch (error) {
        child?.stdio[3]?.destroy();
        tracked[Symbol.dispose]();
        throw error;
      } finally {
        await output.close();
      }
    },
    run: (request) => runToEnd(open, request),
    diagnose,
    inherited: () => inheritedEnvironment(process.env),
  };
}

/** What follows the gate's text: its own name in messages, then the program and its arguments. */
function gatedCommand({ command, environment }: SpawnRequest): readonly string[] {
  const odd = Object.entries(environment).filter(([name]) => !/^[A-Za-z_][A-Za-z0-9_]*$/.test(name) || ofTheShell.includes(name));
  // A name may begin like an option.
  const past = odd.length === 0 ? [] : ['/usr/bin/env', '--', ...odd.map(([name, value]) => `${name}=${value}`)];
  return [command[0], ...past, ...command];
}

function gated(child: ChildProcess, tracked: Disposable, identity: ProcessIdentity): GatedProcess {
  const pipe = child.stdio[3] as Writable;
  // The child may be gone before the byte arrives; its exit tells, the broken pipe does not have to.
  pipe.on('error', () => {});
  const exited = new Promise<ProcessExit>((resolve) => {
    const settle = (code: number | null, signal: NodeJS.Signals | null): void => {
      pipe.destroy();
      tracked[Symbol.dispose]();
      resolve(exitOf(code, signal));
    };
    if (child.exitCode !== null || child.signalCode !== null) settle(child.exitCode, child.signalCode);
    else child.once('exit', settle);
  });
  // A program that ends must not wait for the processes that it keeps.
  child.unref();
  return {
    identity,
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

function inheritedEnvironment(from: NodeJS.ProcessEnv): Readonly<Record<string, string>> {
  const names = ['PATH', 'HOME', 'USER', 'LOGNAME', 'SHELL', 'LANG', 'LC_ALL', 'LC_CTYPE', 'TZ', 'TMPDIR'];
  return Object.fromEntries(names.filter((name) => from[name] !== undefined).map((name) => [name, from[name] as string]));
}
