import type { ChildProcess } from 'node:child_process';
import { spawn } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** The built program. */
export const program = fileURLToPath(new URL('../../dist/cli/main.js', import.meta.url));

export interface CliResult {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** A folder with a program in it that may be left running: everything ends with it. */
export class Workplace implements AsyncDisposable {
  readonly folder: string;
  readonly #running = new Set<ChildProcess>();

  private constructor(folder: string) {
    this.folder = folder;
  }

  static async make(inside: string = tmpdir()): Promise<Workplace> {
    return new Workplace(await mkdtemp(join(inside, 'ss-cli-')));
  }

  path(name: string): string {
    return join(this.folder, name);
  }

  async write(name: string, text: string): Promise<string> {
    await writeFile(this.path(name), text);
    return name;
  }

  /** Runs a command to its end. */
  run(args: readonly string[], options: { readonly input?: string; readonly variables?: Record<string, string> } = {}): Promise<CliResult> {
    const child = this.#spawn(args, options.variables);
    const result = collect(child);
    child.stdin?.end(options.input ?? '');
    return result;
  }

  /** Starts a command that goes on. */
  start(args: readonly string[]): Background {
    const child = this.#spawn(args);
    child.stdin?.end();
    this.#running.add(child);
    return new Background(child);
  }

  /** Serves a module that ends as this text does, in which `defineResource` is known, and `spec` as a schema that takes anything. */
  async serveModule(text: string): Promise<Background> {
    await this.write('module.mjs', `${moduleStart}${text}`);
    const serve = this.start(['serve', 'module.mjs', '--store', 'memory:']);
    await serve.shows('serving');
    return serve;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const child of this.#running) {
      if (child.exitCode !== null || child.signalCode !== null) continue;
      const ended = new Promise((resolve) => child.once('exit', resolve));
      child.kill('SIGINT');
      await ended;
    }
    await rm(this.folder, { recursive: true, force: true });
  }

  #spawn(args: readonly string[], variables: Record<string, string> = {}): ChildProcess {
    const { INIT_CWD: _init, NO_COLOR: _color, ...inherited } = process.env;
    return spawn(process.execPath, [program, ...args], { cwd: this.folder, env: { ...inherited, ...variables }, stdio: 'pipe' });
  }
}

const moduleStart = `import { defineResource } from '${new URL('../../dist/index.js', import.meta.url).href}';
const spec = { '~standard': { version: 1, vendor: 'test', validate: (value) => ({ value }) } };
`;

/** A command that goes on while others run. */
export class Background {
  readonly #child: ChildProcess;
  readonly result: Promise<CliResult>;
  #output = '';
  #callbacks: (() => void)[] = [];

  constructor(child: ChildProcess) {
    this.#child = child;
    for (const stream of [child.stdout, child.stderr]) {
      stream?.on('data', (chunk: Buffer) => {
        this.#output += chunk.toString();
        for (const callback of this.#callbacks.splice(0)) callback();
      });
    }
    this.result = collect(child);
    void this.result.then(() => {
      for (const callback of this.#callbacks.splice(0)) callback();
    });
  }

  get pid(): number {
    return this.#child.pid as number;
  }

  /** What was printed so far, on both streams. */
  get output(): string {
    return this.#output;
  }

  /** Resolves once the output holds this. */
  async shows(text: string | RegExp): Promise<void> {
    while (!(typeof text === 'string' ? this.#output.includes(text) : text.test(this.#output))) {
      if (this.#child.exitCode !== null)
        throw new Error(`the command ended with ${this.#child.exitCode} before it showed ${text}:\n${this.#output}`);
      await new Promise<void>((resolve) => this.#callbacks.push(resolve));
    }
  }

  kill(signal: NodeJS.Signals): void {
    this.#child.kill(signal);
  }
}

function collect(child: ChildProcess): Promise<CliResult> {
  let stdout = '';
  let stderr = '';
  child.stdout?.on('data', (chunk: Buffer) => (stdout += chunk.toString()));
  child.stderr?.on('data', (chunk: Buffer) => (stderr += chunk.toString()));
  return new Promise((resolve) => child.on('close', (code) => resolve({ code, stdout, stderr })));
}

/** A stack with one service that answers at once, and one that needs it. */
export const smallStack = `
metadata: { type: stack, id: small }
spec:
  directory: ./data
  services:
    web:
      command: [node, server.mjs]
      environment: { PORT: "\${port:web}" }
      files: { server.mjs: "import { createServer } from 'node:http'; console.log('begun'); createServer((request, response) => response.end('ok')).listen(process.env.PORT, '127.0.0.1');" }
      ready: { http: "http://127.0.0.1:\${port:web}/" }
    idle:
      command: [node, -e, "console.log('hello'); setInterval(() => {}, 1000)"]
      dependsOn: [web]
      ready: { log: hello }
`;
