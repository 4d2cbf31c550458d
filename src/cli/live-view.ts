import type { Pointer, Readiness, Resource } from '../resource/index.ts';
import { isTombstone, visibleText } from '../resource/index.ts';
import type { StateEvent } from '../state/index.ts';
import type { CommandContext } from './context.ts';
import { followKind } from './follow-kind.ts';
import { statusTypeOf } from './joined.ts';
import type { ShownStatus, ShownSubject } from './live-table.ts';
import { frame, phasesOf, reasonText } from './live-table.ts';
import { durationText } from './output/age.ts';
import { shownName } from './output/names.ts';
import type { Session } from './session.ts';
import type { TypesLookup } from './types-lookup.ts';

/** How often a terminal is drawn anew at most, milliseconds; ages move once a second. */
const frameMs = 100;
const tickMs = 1_000;

/** How long something waits before a line says why, milliseconds: what passes at once is not worth one. */
const patienceMs = 1_000;

interface Waiting {
  text: string;
  readonly sinceMs: number;
}

class Subject implements ShownSubject {
  readonly pointer: Pointer;
  readonly statusType: string | undefined;
  resource: Resource | undefined;
  status: ShownStatus | undefined;
  readiness: Readiness | undefined;
  gone = false;
  /** Looks that were asked for and not begun; at most one runs. */
  asked = 0;
  looking = false;

  constructor(pointer: Pointer, statusType: string | undefined, readiness: Readiness | undefined) {
    this.pointer = pointer;
    this.readiness = readiness;
    this.statusType = statusType;
  }

  get ready(): boolean {
    return this.readiness?.status === 'Current';
  }

  get reason(): string {
    if (this.gone) return 'it was destroyed';
    return this.readiness === undefined ? 'waiting for its controller' : reasonText(this.readiness);
  }
}

export interface LiveViewOptions {
  readonly types: TypesLookup;
  /** With what a first look said of them, where there was one. Types that have no readiness are left out. */
  readonly subjects: readonly { readonly pointer: Pointer; readonly readiness?: Readiness }[];
  /** Takes the lines where nothing is drawn in place. */
  readonly tell: (line: string) => void;
}

/** Shows resources as they come up: a table that is drawn anew on a terminal, one line per change elsewhere. */
export class LiveView implements AsyncDisposable {
  readonly #context: CommandContext;
  readonly #session: Session;
  readonly #tell: (line: string) => void;
  readonly #subjects: readonly Subject[];
  readonly #told = new Map<string, string>();
  /** What is not told yet, in the order in which it came up. */
  readonly #waiting = new Map<string, Waiting>();
  readonly #stop = new AbortController();
  readonly #started: number;
  readonly #watches: readonly Promise<void>[];
  #callbacks: (() => void)[] = [];
  #timer: Disposable | undefined;
  #drawn = 0;
  #failure: unknown;

  constructor(context: CommandContext, session: Session, { types, subjects, tell }: LiveViewOptions) {
    this.#context = context;
    this.#session = session;
    this.#tell = tell;
    this.#started = context.environment.elapsed();
    this.#subjects = subjects.map(({ pointer, readiness }) => new Subject(pointer, statusTypeOf(types, pointer.type), readiness));
    this.#watches = this.#follow();
    for (const watch of this.#watches) {
      watch.catch((error: unknown) => {
        this.#failure ??= error;
        this.#wake();
      });
    }
    if (context.io.isTerminal) this.#schedule();
  }

  /** Resolves once all are ready, or the view was disposed; rejects when it cannot see any more. */
  async ready(): Promise<void> {
    await this.#until(() => this.#subjects.every((subject) => subject.ready));
  }

  /** The same, and once one has failed for good or is gone. */
  async settled(): Promise<void> {
    await this.#until(() => this.failed.length > 0 || this.#subjects.every((subject) => subject.ready));
  }

  /** What has failed for good, and what is gone. */
  get failed(): readonly ShownSubject[] {
    return this.#subjects.filter(({ gone, readiness }) => gone || readiness?.status === 'Failed');
  }

  /** What is not ready. */
  get waiting(): readonly ShownSubject[] {
    return this.#subjects.filter(({ ready }) => !ready);
  }

  /** Draws a last time. */
  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#stop.signal.aborted) return;
    if (this.#context.io.isTerminal) this.#draw();
    this.#stop.abort();
    this.#timer?.[Symbol.dispose]();
    this.#timer = undefined;
    this.#wake();
    await Promise.allSettled(this.#watches);
  }

  async #until(holds: () => boolean): Promise<void> {
    for (;;) {
      if (this.#failure !== undefined && !this.#stop.signal.aborted) throw this.#failure;
      if (this.#stop.signal.aborted || holds()) return;
      await new Promise<void>((resolve) => this.#callbacks.push(resolve));
    }
  }

  #wake(): void {
    for (const callback of this.#callbacks.splice(0)) callback();
  }

  /** One watch for each kind, whatever the number of resources. */
  #follow(): readonly Promise<void>[] {
    const kinds = new Map<
      string,
      { readonly namespace: string; readonly type: string; readonly subjects: Map<string, Subject>; readonly own: boolean }
    >();
    for (const subject of this.#subjects) {
      const { namespace, type, id } = subject.pointer;
      for (const [watched, own] of [
        [type, true] as const,
        ...(subject.statusType === undefined ? [] : [[subject.statusType, false] as const]),
      ]) {
        const key = JSON.stringify([namespace, watched, own]);
        const kind = kinds.get(key) ?? { namespace, type: watched, subjects: new Map<string, Subject>(), own };
        kind.subjects.set(id, subject);
        kinds.set(key, kind);
      }
    }
    // It ends with the view, not only with the command.
    const io = { ...this.#context.io, signal: this.#stop.signal };
    return [...kinds.values()].map(({ namespace, type, subjects, own }) =>
      followKind({ ...this.#context, io }, this.#session, { namespace, type }, {}, (event) => this.#take(event, subjects, own)),
    );
  }

  #take(event: StateEvent, subjects: ReadonlyMap<string, Subject>, own: boolean): void {
    if (event.type !== 'created' && event.type !== 'updated' && event.type !== 'destroyed') return;
    const subject = subjects.get(event.resource.metadata.id);
    if (subject === undefined) return;
    const present = event.type === 'destroyed' ? undefined : event.resource;
    if (own) {
      if (present === undefined && subject.resource !== undefined && !isTombstone(event.resource)) subject.gone = true;
      subject.resource = present;
      if (present !== undefined) subject.gone = false;
    } else subject.status = present?.spec as ShownStatus | undefined;
    void this.#look(subject);
  }

  /** Asks whether it is ready; what changes meanwhile is asked again. */
  async #look(subject: Subject): Promise<void> {
    subject.asked++;
    if (subject.looking) return;
    subject.looking = true;
    try {
      while (subject.asked > 0) {
        subject.asked = 0;
        const found = await this.#session.readiness(subject.pointer);
        // A type that cannot tell is ready when it is there.
        subject.readiness = found?.readiness ?? { status: 'Current', reason: '', message: '' };
      }
    } catch (error) {
      this.#failure ??= error;
    } finally {
      subject.looking = false;
    }
    if (this.#stop.signal.aborted) return;
    if (this.#context.io.isTerminal) this.#schedule();
    else this.#tellChanges(subject);
    this.#wake();
  }

  /** What moved, a line each: what is done at once, what waits once it has waited for a while. */
  #tellChanges(subject: Subject): void {
    const name = shownName(subject.pointer);
    const children = subject.status?.children ?? [];
    for (const { type, status, reason, message } of phasesOf(subject.status)) {
      if (status === 'Unknown') continue;
      // What a phase says of its children they say themselves.
      const own = children.some((child) => message.includes(`${child.kind}/${child.name}`)) ? '' : message;
      this.#tellOne(`${name} phase ${type}`, status === 'True' ? 'done' : undefined, reasonText({ reason, message: own }));
    }
    for (const child of children)
      this.#tellOne(`${name} ${child.kind}/${child.name}`, child.ready ? 'ready' : undefined, reasonText(child));
    // The phase at fault says why, where there is one.
    const why = phasesOf(subject.status).some(({ status }) => status === 'False') ? (subject.readiness?.reason ?? '') : subject.reason;
    this.#tellOne(name, subject.ready ? 'ready' : undefined, why);
  }

  #tellOne(about: string, done: string | undefined, why: string): void {
    const now = this.#context.environment.elapsed();
    if (done !== undefined) {
      this.#waiting.delete(about);
      this.#print(about, done);
      return;
    }
    const waiting = this.#waiting.get(about);
    if (waiting !== undefined) waiting.text = why;
    else if (this.#told.get(about) !== why) this.#waiting.set(about, { text: why, sinceMs: now });
    if (this.#waiting.size > 0) this.#tellLater();
  }

  #tellLater(): void {
    if (this.#stop.signal.aborted) return;
    this.#timer ??= this.#context.environment.after(patienceMs / 4, () => {
      this.#timer = undefined;
      const before = this.#context.environment.elapsed() - patienceMs;
      for (const [about, { text, sinceMs }] of this.#waiting) {
        if (sinceMs > before) continue;
        this.#waiting.delete(about);
        this.#print(about, text);
      }
      if (this.#waiting.size > 0) this.#tellLater();
    });
  }

  #print(about: string, text: string): void {
    if (this.#told.get(about) === text) return;
    this.#told.set(about, text);
    const { environment } = this.#context;
    const elapsed = durationText(environment.elapsed() - this.#started);
    this.#tell(`${environment.timestamp()} ${elapsed.padStart(4)} ${visibleText(about)}: ${visibleText(text)}\n`);
  }

  #schedule(): void {
    if (this.#stop.signal.aborted) return;
    this.#timer ??= this.#context.environment.after(frameMs, () => {
      this.#draw();
      this.#timer = this.#context.environment.after(tickMs - frameMs, () => {
        this.#timer = undefined;
        this.#schedule();
      });
    });
  }

  #draw(): void {
    const { io, environment } = this.#context;
    const text = frame(this.#subjects, {
      nowMs: environment.now(),
      elapsedMs: environment.elapsed() - this.#started,
      columns: io.columns(),
      rows: io.rows(),
    });
    // Back to the first line of what was drawn before, and clear from there.
    io.draw(`${this.#drawn > 0 ? `\u001b[${this.#drawn}A` : ''}\u001b[J${this.#paint(text)}`);
    this.#drawn = text.split('\n').length - 1;
  }

  #paint(text: string): string {
    if (!this.#context.io.color) return text;
    return text
      .replace(/^●/gm, '\u001b[32m●\u001b[0m')
      .replace(/^○/gm, '\u001b[33m○\u001b[0m')
      .replace(/✓/g, '\u001b[32m✓\u001b[0m')
      .replace(/▸/g, '\u001b[33m▸\u001b[0m');
  }
}
