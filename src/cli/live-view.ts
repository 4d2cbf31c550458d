import type { Environment } from '../environment/index.ts';
import { stackDefinition, stackStatusDefinition } from '../host/index.ts';
import type { Resource } from '../resource/index.ts';
import { visibleText } from '../resource/index.ts';
import type { State } from '../state/index.ts';
import type { Condition, InventoryEntry } from '../workload/index.ts';
import type { CliIo } from './io.ts';
import { ageText, durationText } from './output/age.ts';
import { Table } from './output/table.ts';
import { cutText } from './output/text-width.ts';

/** How often a terminal is drawn anew at most, milliseconds; ages move once a second. */
const frameMs = 100;
const tickMs = 1_000;

/** Reasons of children that nothing was done for yet. */
const unbegun: ReadonlySet<string> = new Set(['NotFound', 'NoStatus', 'NotReady', 'NotObserved']);

interface StackStatus {
  readonly observedVersion?: string;
  readonly conditions?: readonly Condition[];
  readonly children?: readonly InventoryEntry[];
}

/** Shows stacks as they come up: one table that is drawn anew on a terminal, one line per change elsewhere. */
export class LiveView implements AsyncDisposable {
  readonly #io: CliIo;
  readonly #environment: Environment;
  readonly #stacks = new Map<string, Resource>();
  readonly #statuses = new Map<string, StackStatus>();
  readonly #told = new Map<string, string>();
  readonly #stop = new AbortController();
  readonly #started: number;
  readonly #watches: Promise<void>[];
  #callbacks: (() => void)[] = [];
  #timer: Disposable | undefined;
  #drawn = 0;

  /** Shows the stacks of these namespaces, and of the default one. */
  constructor(state: State, io: CliIo, environment: Environment, namespaces: readonly string[] = []) {
    this.#io = io;
    this.#environment = environment;
    this.#started = environment.elapsed();
    this.#watches = [...new Set([stackDefinition.defaultNamespace, ...namespaces])].flatMap((namespace) => [
      this.#follow(state, stackDefinition.kind(namespace), this.#stacks, (resource) => resource),
      this.#follow(state, stackStatusDefinition.kind(namespace), this.#statuses, (resource) => resource.spec as unknown as StackStatus),
    ]);
    if (io.isTerminal) this.#schedule();
  }

  /** Resolves once all of these stacks are ready at their present version. */
  async ready(stacks: readonly Resource['metadata'][]): Promise<void> {
    for (;;) {
      if (this.#stop.signal.aborted || stacks.every((stack) => this.#isReady(nameOf(stack)))) return;
      await new Promise<void>((resolve) => this.#callbacks.push(resolve));
    }
  }

  /** The stacks that are not ready, and why. */
  reasons(stacks: readonly Resource['metadata'][]): readonly string[] {
    return stacks
      .map(nameOf)
      .filter((id) => !this.#isReady(id))
      .map((id) => `${visibleText(id)}: ${this.#reason(id)}`);
  }

  /** Draws a last time. */
  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#stop.signal.aborted) return;
    if (this.#io.isTerminal) this.#draw();
    this.#stop.abort();
    this.#timer?.[Symbol.dispose]();
    this.#timer = undefined;
    for (const callback of this.#callbacks.splice(0)) callback();
    await Promise.allSettled(this.#watches);
  }

  #isReady(id: string): boolean {
    const version = this.#stacks.get(id)?.metadata.version;
    const status = this.#statuses.get(id);
    return version !== undefined && status?.observedVersion === version && condition(status, 'Ready')?.status === 'True';
  }

  #reason(id: string): string {
    const ready = condition(this.#statuses.get(id), 'Ready');
    if (ready === undefined) return 'waiting for its controller';
    return visibleText(`${ready.reason}${ready.message === '' ? '' : `: ${ready.message}`}`);
  }

  async #follow<Value>(
    state: State,
    kind: Parameters<State['follow']>[0],
    into: Map<string, Value>,
    read: (resource: Resource) => Value,
  ): Promise<void> {
    const watch = await state.follow(kind, { bootstrapContents: true, signal: this.#stop.signal });
    await watch.drain((batch) => {
      for (const event of batch) {
        if (event.type === 'created' || event.type === 'updated')
          into.set(nameOf(event.resource.metadata), read(event.resource as Resource));
        if (event.type === 'destroyed') into.delete(nameOf(event.resource.metadata));
      }
      if (this.#io.isTerminal) this.#schedule();
      else this.#tellChanges();
      for (const callback of this.#callbacks.splice(0)) callback();
    });
  }

  /** What moved, a line each. What was only planned yet is not worth one. */
  #tellChanges(): void {
    for (const [id, status] of this.#statuses) {
      for (const entry of status.children ?? []) {
        if (entry.ready) this.#tell(`${id} ${entry.kind}/${entry.name}`, 'ready');
        else if (!unbegun.has(entry.reason)) {
          this.#tell(`${id} ${entry.kind}/${entry.name}`, `${entry.reason}${entry.message === '' ? '' : `: ${entry.message}`}`);
        }
      }
      const ready = condition(status, 'Ready');
      if (ready !== undefined) this.#tell(`${id} stack`, ready.status === 'True' ? 'ready' : ready.reason);
    }
  }

  #tell(about: string, text: string): void {
    if (this.#told.get(about) === text) return;
    this.#told.set(about, text);
    this.#io.write(`${this.#environment.timestamp()} ${visibleText(about)}: ${visibleText(text)}\n`);
  }

  #schedule(): void {
    if (this.#stop.signal.aborted) return;
    this.#timer ??= this.#environment.after(frameMs, () => {
      this.#draw();
      this.#timer = this.#environment.after(tickMs - frameMs, () => {
        this.#timer = undefined;
        this.#schedule();
      });
    });
  }

  #draw(): void {
    const columns = this.#io.columns();
    const rows: string[][] = [];
    const lines: string[] = [];
    const now = this.#environment.now();
    for (const [id, stack] of this.#stacks) {
      const status = this.#statuses.get(id);
      lines.push(
        cutText(
          `${this.#mark(this.#isReady(id))} ${visibleText(id)}   ${this.#strip(status)}   ${durationText(this.#environment.elapsed() - this.#started)}${stack.metadata.phase === 'tearingDown' ? '   being torn down' : ''}`,
          columns,
        ),
      );
      for (const entry of status?.children ?? []) {
        const reason = entry.ready ? '' : `${entry.reason}${entry.message === '' ? '' : `: ${entry.message}`}`;
        rows.push([`  ${entry.kind}`, entry.name, entry.ready ? 'ready' : 'waiting', ageText(entry.lastTransitionTime, now), reason]);
      }
    }
    const { shown, left } = fitting(rows, this.#io.rows() - lines.length - 4);
    const table = rows.length === 0 ? '' : new Table(['  KIND', 'NAME', 'STATE', 'FOR', 'REASON']).render(shown, { columns });
    const text = `${lines.map((line) => `${line}\n`).join('')}${table}${left === 0 ? '' : `  … and ${left} more\n`}`;
    const height = text.split('\n').length - 1;
    // Back to the first line of what was drawn before, and clear from there.
    this.#io.draw(`${this.#drawn > 0 ? `\u001b[${this.#drawn}A` : ''}\u001b[J${this.#paint(text)}`);
    this.#drawn = height;
  }

  /** The phases as a strip: done, at work, not reached. */
  #strip(status: StackStatus | undefined): string {
    const phases = (status?.conditions ?? []).filter(({ type }) => !['Ready', 'Reconciling', 'Stalled', 'Paused'].includes(type));
    return phases.map(({ type, status: state }) => `${state === 'True' ? '✓' : state === 'False' ? '▸' : '·'} ${type}`).join('  ');
  }

  #mark(ready: boolean): string {
    return ready ? '●' : '○';
  }

  #paint(text: string): string {
    if (!this.#io.color) return text;
    return text
      .replace(/●/g, '\u001b[32m●\u001b[0m')
      .replace(/○/g, '\u001b[33m○\u001b[0m')
      .replace(/✓/g, '\u001b[32m✓\u001b[0m')
      .replace(/▸/g, '\u001b[33m▸\u001b[0m');
  }
}

/** A stack's id; elsewhere than in the default namespace with its namespace. */
function nameOf({ namespace, id }: Resource['metadata']): string {
  return namespace === stackDefinition.defaultNamespace ? id : `${namespace}/${id}`;
}

/** What fits on the screen: what is not ready comes first, so that it is never the part left out. */
function fitting(
  rows: readonly (readonly string[])[],
  room: number,
): { readonly shown: readonly (readonly string[])[]; readonly left: number } {
  if (rows.length <= room || room < 1) return { shown: rows, left: 0 };
  const waiting = rows.filter((row) => row[2] !== 'ready');
  const shown = new Set([...waiting, ...rows.filter((row) => row[2] === 'ready')].slice(0, room));
  return { shown: rows.filter((row) => shown.has(row)), left: rows.length - shown.size };
}

function condition(status: StackStatus | undefined, type: string): Condition | undefined {
  return status?.conditions?.find((each) => each.type === type);
}
