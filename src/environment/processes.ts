/**
 * One process of this machine, for good: a pid alone is used again by others, a pid with its start time is not
 * within one boot of the machine.
 */
export interface ProcessIdentity {
  readonly pid: number;
  /** Opaque: ticks since boot on Linux, `ps -o lstart` (one second, weaker) elsewhere. Compared for equality only. */
  readonly startTime: string;
  /** The machine's boot. Another boot: the process is dead. */
  readonly bootId: string;
}

export interface SpawnRequest {
  /** Program and arguments; no shell interprets them. */
  readonly command: readonly [string, ...string[]];
  readonly directory: string;
  /** The whole environment of the child; nothing is inherited. A shell may add `PWD`, its folder. */
  readonly environment: Readonly<Record<string, string>>;
  /** Standard output and error are appended to this file. */
  readonly outputFile: string;
}

export interface ProcessExit {
  /** Exit code; `undefined` when ended by a signal. */
  readonly code?: number;
  readonly signal?: string;
}

/**
 * A process that waits behind a gate: it is a tiny shell in its own process group that reads a byte from descriptor 3.
 * Without the byte it exits 75, so that a crash before `release` leaves nothing behind.
 */
export interface GatedProcess {
  readonly identity: ProcessIdentity;
  /** Lets it `exec` the program (exit 127: the program is missing; 126: it may not be executed). */
  release(): Promise<void>;
  /** Closes the gate: the program never starts. */
  abandon(): Promise<void>;
  /** Settles once when this process, our child, has ended and was reaped. */
  readonly exited: Promise<ProcessExit>;
}

export type ProcessState = 'running' | 'gone';

export interface ProcessPort {
  /** Node's name of the system: `linux`, `darwin`, `win32`, … */
  readonly platform: string;
  /** Identifies this boot of the machine. */
  bootId(): Promise<string>;
  /** Starts a child behind its gate. Rejects when not even the gate could start (missing folder: `ENOENT` naming the folder). */
  spawnGated(request: SpawnRequest): Promise<GatedProcess>;
  /** `gone`: no such pid, another start time, another boot, or a zombie (state Z or X). */
  inspect(identity: ProcessIdentity): Promise<ProcessState>;
  /** What lives under that pid now, whoever it is. */
  identify(pid: number): Promise<ProcessIdentity | undefined>;
  /** Living members (not zombies) of the process group that `leader` leads or led, its own pid included. */
  group(leader: ProcessIdentity): Promise<readonly number[]>;
  /** Signals the whole group of `leader`; one that was stopped goes on to hear it. `false` when nobody is there. Never signals a group whose pid now belongs to somebody else. */
  signalGroup(
    leader: ProcessIdentity,
    signal: 'SIGTERM' | 'SIGKILL' | 'SIGINT' | 'SIGHUP' | 'SIGQUIT' | 'SIGUSR1' | 'SIGUSR2',
  ): Promise<boolean>;
  /** Runs a short command to its end with its output (cut at 64 KiB); its whole group is killed at the limit or abort, and reaped. */
  run(request: {
    readonly command: readonly [string, ...string[]];
    readonly directory: string;
    readonly environment: Readonly<Record<string, string>>;
    readonly limitMs: number;
    readonly signal?: AbortSignal;
  }): Promise<ProcessExit & { readonly output: string; readonly timedOut: boolean }>;
  /** Tells why a command cannot start: a missing folder, a missing program, no execute bit, a missing interpreter; `undefined` when it looks fine. */
  diagnose(request: SpawnRequest): Promise<string | undefined>;
  /** The environment variables of this program that a child may need (`PATH`, `HOME`, …). */
  inherited(): Readonly<Record<string, string>>;
}
