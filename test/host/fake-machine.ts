import type {
  FilePort,
  GatedProcess,
  NetworkPort,
  ProcessExit,
  ProcessIdentity,
  ProcessPort,
  SpawnRequest,
} from '../../src/environment/index.ts';

interface FakeProcess {
  readonly identity: ProcessIdentity;
  readonly group: number;
  readonly request: SpawnRequest | undefined;
  released: boolean;
  settle(exit: ProcessExit): void;
}

/** A machine in memory: processes that live until they are told otherwise, a few files, ports that are free unless they are taken. */
export class FakeMachine {
  boot = 'boot-1';
  /** What happened, in order. */
  readonly log: string[] = [];
  readonly content = new Map<string, string>();
  readonly takenPorts = new Set<number>();
  /** What a program does with a signal to its group. @default every process ends by it */
  onSignal: (signal: string, pid: number) => 'ends' | 'ignores' = () => 'ends';
  /** Called when a gate is opened, before anything else happens. */
  onRelease: (identity: ProcessIdentity) => Promise<void> = async () => {};
  /** What is wrong with starting something. */
  diagnosis: string | undefined;
  #nextPid = 100;
  #ticks = 1;
  readonly #processes = new Map<number, FakeProcess>();

  get pids(): readonly number[] {
    return [...this.#processes.keys()];
  }

  /** Ends one process, by itself or by somebody else. */
  exit(pid: number, exit: ProcessExit): void {
    const found = this.#processes.get(pid);
    if (found === undefined) throw new Error(`there is no process ${pid}`);
    this.#processes.delete(pid);
    this.log.push(`exit ${pid}`);
    found.settle(exit);
  }

  /** A process of the group of another one. */
  addToGroup(leader: number): number {
    const pid = this.#nextPid++;
    this.#add(pid, leader, undefined, () => {});
    return pid;
  }

  /** Another program has this pid now. */
  reuse(pid: number): void {
    this.#processes.delete(pid);
    this.#add(pid, pid, undefined, () => {});
  }

  /** All processes are gone, and pids start anew. */
  reboot(): void {
    this.boot = `${this.boot}+`;
    this.#processes.clear();
    this.#nextPid = 100;
  }

  /** The program that started everything is gone: nobody is told of exits, and closed gates end their processes. */
  orphanAll(): void {
    for (const [pid, found] of [...this.#processes]) {
      found.settle = () => {};
      if (found.request !== undefined && !found.released) this.#processes.delete(pid);
    }
  }

  #add(pid: number, group: number, request: SpawnRequest | undefined, settle: (exit: ProcessExit) => void): FakeProcess {
    const added: FakeProcess = {
      identity: { pid, startTime: String(this.#ticks++), bootId: this.boot },
      group,
      request,
      released: false,
      settle,
    };
    this.#processes.set(pid, added);
    return added;
  }

  #isAlive(identity: ProcessIdentity): boolean {
    return identity.bootId === this.boot && this.#processes.get(identity.pid)?.identity.startTime === identity.startTime;
  }

  #group(leader: ProcessIdentity): readonly number[] {
    if (leader.bootId !== this.boot) return [];
    const present = this.#processes.get(leader.pid);
    if (present !== undefined && present.identity.startTime !== leader.startTime) return [];
    return [...this.#processes].filter(([, { group }]) => group === leader.pid).map(([pid]) => pid);
  }

  readonly processes: ProcessPort = {
    platform: 'linux',
    bootId: async () => this.boot,
    spawnGated: async (request): Promise<GatedProcess> => {
      const pid = this.#nextPid++;
      this.log.push(`spawn ${pid} ${request.command.join(' ')}`);
      let settle: (exit: ProcessExit) => void = () => {};
      const exited = new Promise<ProcessExit>((resolve) => {
        settle = resolve;
      });
      const added = this.#add(pid, pid, request, settle);
      return {
        identity: added.identity,
        exited,
        release: async () => {
          await this.onRelease(added.identity);
          added.released = true;
          this.log.push(`release ${pid}`);
        },
        abandon: async () => {
          this.log.push(`abandon ${pid}`);
          this.exit(pid, { code: 75 });
        },
      };
    },
    inspect: async (identity) => (this.#isAlive(identity) ? 'running' : 'gone'),
    identify: async (pid) => this.#processes.get(pid)?.identity,
    group: async (leader) => this.#group(leader),
    signalGroup: async (leader, signal) => {
      const members = this.#group(leader);
      if (members.length === 0) return false;
      this.log.push(`${signal} ${leader.pid}`);
      for (const pid of members) if (signal === 'SIGKILL' || this.onSignal(signal, pid) === 'ends') this.exit(pid, { signal });
      return true;
    },
    run: async () => ({ code: 0, output: '', timedOut: false }),
    diagnose: async () => this.diagnosis,
    inherited: () => ({ PATH: '/bin' }),
  };

  readRange: FilePort['readRange'] = async (path, offset, length) =>
    Buffer.from((this.content.get(path) ?? '').slice(offset, offset + length));

  readonly files: FilePort = new Proxy({} as FilePort, {
    get: (_target, name) => {
      const known: Partial<FilePort> = {
        stat: async (path) => {
          const text = this.content.get(path);
          return text === undefined ? undefined : { kind: 'file', size: text.length, mode: 0o600, modifiedMs: 0, identity: path };
        },
        readRange: this.readRange,
        makeDirectory: async () => {},
        remove: async (path) => this.content.delete(path),
      };
      const method = known[name as keyof FilePort];
      if (method === undefined) throw new Error(`the fake machine does not do ${String(name)}`);
      return method;
    },
  });

  readonly network: NetworkPort = {
    http: async () => ({ status: 200, body: '' }),
    connect: async () => {},
    portFree: async (port) => !this.takenPorts.has(port),
    freePort: async () => 1,
  };
}
