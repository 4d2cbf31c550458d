import type { ChildProcess } from 'node:child_process';
import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import type { Resource } from '../../src/resource/index.ts';

const program = fileURLToPath(new URL('./store-program.mjs', import.meta.url));

/** What a call came to, in the other process. */
export interface Outcome {
  readonly value?: unknown;
  /** Code of its error; `foreign`: an error that is none of ours. */
  readonly code?: string;
  readonly reason?: string;
  readonly message?: string;
  readonly holder?: string;
}

export type Call = readonly [method: string, ...args: unknown[]];

export interface StoreProgramOptions {
  readonly file: string;
  /** The program that starts it, and its arguments: `strace -f …`. */
  readonly under?: readonly string[];
  /** Of `openSqliteState`. */
  readonly open?: Readonly<Record<string, unknown>>;
}

/** A process of its own that owns a store, and does what it is told. */
export class StoreProgram implements AsyncDisposable {
  readonly process: ChildProcess;
  readonly #lines: AsyncIterator<string>;
  readonly #exited: Promise<unknown>;

  private constructor({ file, under = [], open = {} }: StoreProgramOptions) {
    const [command = process.execPath, ...args] = [...under, process.execPath, program, file, JSON.stringify(open)];
    this.process = spawn(command, args, { stdio: ['pipe', 'pipe', 'inherit'] });
    this.#exited = new Promise((resolve) => {
      this.process.once('error', resolve);
      this.process.once('close', resolve);
    });
    // It may die at any time; who waits for its answer learns it.
    this.process.stdin?.on('error', () => {});
    if (this.process.stdout === null) throw new Error('no output');
    this.#lines = createInterface({ input: this.process.stdout })[Symbol.asyncIterator]();
  }

  /** Answers what the open came to. */
  static async start(options: StoreProgramOptions): Promise<{ readonly program: StoreProgram; readonly opened: Outcome }> {
    const started = new StoreProgram(options);
    const [opened] = await started.#answers();
    return { program: started, opened: opened as Outcome };
  }

  /** Makes calls together. Throws when the program died. */
  async together(calls: readonly Call[]): Promise<readonly Outcome[]> {
    this.process.stdin?.write(`${JSON.stringify(calls)}\n`);
    return this.#answers();
  }

  async call(...call: Call): Promise<Outcome> {
    return (await this.together([call]))[0] as Outcome;
  }

  async kill(): Promise<void> {
    this.process.kill('SIGKILL');
    await this.#exited;
  }

  /** Closes the store and ends the program; answers what the close came to. */
  async end(): Promise<Outcome | undefined> {
    this.process.stdin?.end();
    const { value, done } = await this.#lines.next();
    await this.#exited;
    return done === true ? undefined : (JSON.parse(value) as Outcome[])[0];
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.process.exitCode === null && this.process.signalCode === null) await this.kill();
  }

  async #answers(): Promise<readonly Outcome[]> {
    const { value, done } = await this.#lines.next();
    if (done === true) throw new Error('the program ended before it answered');
    return JSON.parse(value) as Outcome[];
  }
}

export const kind = { namespace: 'default', type: 'Things.example.dev' };

export const thing = (id: string, spec: unknown, more: Readonly<Record<string, unknown>> = {}) => ({
  metadata: { ...kind, id, ...more },
  spec,
});

/** As the program names long text. */
function brief(spec: unknown): unknown {
  return typeof spec === 'string' && spec.length > 1000 ? { long: spec.length } : spec;
}

/** What was acknowledged, by id. */
export class Ledger {
  readonly #values = new Map<string, { readonly version: string; readonly spec: unknown }>();

  get size(): number {
    return this.#values.size;
  }

  /** A write of this id was acknowledged; `undefined`: destroyed. */
  note(id: string, resource: Resource | undefined): void {
    if (resource === undefined) this.#values.delete(id);
    else this.#values.set(id, { version: resource.metadata.version, spec: resource.spec });
  }

  /** What differs between this and what is found, in words; ids whose outcome is unknown may be either way. */
  differences(found: readonly Resource[], unknown: ReadonlySet<string> = new Set()): readonly string[] {
    const left = new Map(this.#values);
    const wrong: string[] = [];
    for (const { metadata, spec } of found) {
      const known = left.get(metadata.id);
      left.delete(metadata.id);
      if (unknown.has(metadata.id)) continue;
      if (known === undefined) wrong.push(`${metadata.id} is there, at ${metadata.version}`);
      else if (known.version !== metadata.version || JSON.stringify(known.spec) !== JSON.stringify(brief(spec)))
        wrong.push(`${metadata.id} was acknowledged at ${known.version}, it is at ${metadata.version}`);
    }
    for (const [id, { version }] of left) if (!unknown.has(id)) wrong.push(`${id} was acknowledged at ${version}, it is gone`);
    return wrong;
  }
}
