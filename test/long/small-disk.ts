import type { ChildProcess } from 'node:child_process';
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';

/**
 * A file system of a size of its own, in memory, mounted for programs of its own mount namespace only: it goes with the process
 * that holds it. Root, or a system that lets users have namespaces.
 */
export class SmallDisk implements AsyncDisposable {
  /** Programs that are to see it are started by this. */
  readonly enter: readonly string[];
  readonly #folder: string;
  readonly #holder: ChildProcess;

  private constructor(folder: string, holder: ChildProcess) {
    this.#folder = folder;
    this.#holder = holder;
    this.enter = ['nsenter', '-t', String(holder.pid), '-m', ...(isRoot ? [] : ['-U', '--preserve-credentials'])];
  }

  /** Over a folder that exists. */
  static async mount(folder: string, kibibytes: number): Promise<SmallDisk> {
    const script = `mount -t tmpfs -o size=${kibibytes}k,mode=700 small-disk "$0" && echo mounted && exec cat`;
    const holder = spawn('unshare', [isRoot ? '-m' : '-rm', '--propagation', 'private', 'sh', '-c', script, folder], {
      stdio: ['pipe', 'pipe', 'inherit'],
    });
    const [first] = (await Promise.race([once(holder.stdout, 'data'), once(holder, 'close'), once(holder, 'error')])) as unknown[];
    if (String(first).trim() !== 'mounted')
      throw new Error(`these tests need a small file system: run them as root, or allow user namespaces (${String(first)})`);
    return new SmallDisk(folder, holder);
  }

  /** A shell command in the folder; answers what it printed. */
  run(command: string): string {
    const [program = '', ...args] = [...this.enter, 'sh', '-c', `cd "$0" && ${command}`, this.#folder];
    const { status, stdout, stderr } = spawnSync(program, args, { encoding: 'utf8' });
    if (status !== 0) throw new Error(`${command}: ${stderr}`);
    return stdout;
  }

  /** Takes all the room that is left but for some KiB. */
  occupy(leftKibibytes: number): void {
    const free = this.freeKibibytes();
    this.run(`head -c ${Math.max(0, free - leftKibibytes) * 1024} /dev/zero >> filler`);
  }

  release(): void {
    this.run('rm -f filler');
  }

  freeKibibytes(): number {
    return Number(this.run("df -k . | tail -n 1 | awk '{print $4}'"));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const closed = once(this.#holder, 'close');
    this.#holder.stdin?.end();
    await closed;
  }
}

const isRoot = process.getuid?.() === 0;
