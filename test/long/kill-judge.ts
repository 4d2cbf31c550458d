/** A resource as a killed program and its successor tell of it. */
export interface Found {
  readonly type: string;
  readonly id: string;
  readonly version: string;
  readonly updated: string;
  readonly n: string;
  readonly finalizers: readonly string[];
  readonly notes?: readonly { readonly finalizer: string; readonly since: string }[];
}

export interface FoundEvent {
  readonly type: 'created' | 'updated' | 'destroyed';
  readonly revision: number;
  readonly resource: Found;
  readonly old?: string;
}

/** What a program finds when it opens the store that another left. */
export interface Report {
  readonly revision: number;
  readonly storeId: string;
  readonly items: readonly Found[];
  /** `expired`: the bookmark was refused. */
  readonly resumed: readonly { readonly revision: number; readonly expired?: boolean; readonly events: readonly FoundEvent[] }[];
  readonly findings: readonly unknown[];
}

interface Value {
  readonly version: string;
  readonly n: string;
  /** Since when each finalizer is there. */
  readonly since: ReadonlyMap<string, string>;
}

/** A write that was tried; absent `n`: a destroy. */
interface Tried {
  readonly n: string | undefined;
  readonly finalizers: readonly string[];
}

/**
 * Knows what was tried and what was acknowledged, over all kills, and says what must not be. A write that was tried and not
 * acknowledged may have happened, whole, or not at all.
 */
export class Judge {
  acknowledged = 0;
  /** Writes that were found although nobody had heard of them. */
  unheard = 0;
  /** Bookmarks that were resumed, and that were refused because their time had gone. */
  resumed = 0;
  expired = 0;
  readonly bookmarks: { readonly revision: number; readonly bookmark: string }[] = [];
  readonly #values = new Map<string, Value>();
  readonly #tried = new Map<string, Tried>();
  /** What each revision was, once that is known. */
  readonly #revisions = new Map<number, string>();
  #newest = 0;
  #storeId: string | undefined;
  readonly #historyLimit: number;

  /** So many events the store keeps. */
  constructor(historyLimit: number) {
    this.#historyLimit = historyLimit;
  }

  /** A line of the program; `undefined` when it is cut off. */
  line(text: string): Report | undefined {
    if (!text.endsWith(' .')) return undefined;
    const [what, ...rest] = text.slice(0, -2).split(' ');
    const [type = '', id = '', third = '', fourth = '', fifth = ''] = rest;
    const key = `${type}/${id}`;
    switch (what) {
      case 'found':
        return JSON.parse(text.slice('found '.length, -2)) as Report;
      case 't':
        this.#tried.set(key, { n: third === '-' ? undefined : third, finalizers: fourth === '' ? [] : fourth.split(',') });
        return undefined;
      case 'a':
        this.#acknowledge(key, third, fourth);
        return undefined;
      case 'r':
        this.#read(key, third, fourth, fifth);
        return undefined;
      case 'b':
        this.#newest = Math.max(this.#newest, Number(type));
        this.bookmarks.push({ revision: Number(type), bookmark: id });
        return undefined;
      default:
        throw new Error(`the program says: ${text}`);
    }
  }

  /** Throws with what is wrong. */
  check({ revision, storeId, items, resumed, findings }: Report): void {
    this.#storeId ??= storeId;
    const wrong: string[] = findings.map((finding) => JSON.stringify(finding));
    if (storeId !== this.#storeId) wrong.push(`the store is another: ${storeId}`);
    if (revision < this.#newest) wrong.push(`the store is at ${revision}, ${this.#newest} was acknowledged`);
    this.#newest = Math.max(revision, this.#newest);
    const missing = new Set([...this.#values.keys(), ...this.#tried.keys()]);
    for (const found of items) {
      const key = `${found.type}/${found.id}`;
      missing.delete(key);
      wrong.push(...this.#settle(key, found));
    }
    for (const key of missing) wrong.push(...this.#settle(key, undefined));
    this.#tried.clear();
    for (const { revision: from, expired, events } of resumed) {
      if (expired === true) {
        this.expired++;
        if (from >= revision - this.#historyLimit) wrong.push(`the bookmark of ${from} is refused at ${revision}`);
      } else {
        this.resumed++;
        wrong.push(...this.#follow(from, revision, events, items));
      }
    }
    if (wrong.length > 0) throw new Error(wrong.slice(0, 20).join('\n'));
    this.bookmarks.splice(0, this.bookmarks.length - 200);
    for (const old of this.#revisions.keys()) if (old < revision - 5000) this.#revisions.delete(old);
  }

  #acknowledge(key: string, version: string, updated: string): void {
    const tried = this.#tried.get(key);
    if (tried === undefined) throw new Error(`${key} was acknowledged without being tried`);
    this.#tried.delete(key);
    this.acknowledged++;
    if (tried.n === undefined) {
      this.#values.delete(key);
      return;
    }
    this.#name(Number(version), `${key} ${tried.n}`);
    this.#newest = Math.max(this.#newest, Number(version));
    this.#values.set(key, this.#valueOf(key, tried.n, version, tried.finalizers, updated));
  }

  /** What somebody has read is durable, whether its writer has heard of it or not. */
  #read(key: string, version: string, n: string, updated: string): void {
    const tried = this.#tried.get(key);
    if (version === '-') {
      if (tried !== undefined && tried.n === undefined) this.#values.delete(key);
      return;
    }
    this.#newest = Math.max(this.#newest, Number(version));
    this.#name(Number(version), `${key} ${n}`);
    if (tried?.n === n) this.#values.set(key, this.#valueOf(key, n, version, tried.finalizers, updated));
  }

  #valueOf(key: string, n: string, version: string, finalizers: readonly string[], updated: string): Value {
    const before = this.#values.get(key)?.since;
    return { version, n, since: new Map(finalizers.map((finalizer) => [finalizer, before?.get(finalizer) ?? updated])) };
  }

  /** A revision is given to one write, for ever. */
  #name(revision: number, what: string): void {
    const known = this.#revisions.get(revision);
    if (known !== undefined && known !== what) throw new Error(`revision ${revision} was ${known}, and is ${what}`);
    this.#revisions.set(revision, what);
  }

  /** What is found of one resource: what was acknowledged last, or what was tried since. */
  #settle(key: string, found: Found | undefined): readonly string[] {
    const value = this.#values.get(key);
    const tried = this.#tried.get(key);
    const said = `${key}: acknowledged ${value?.n ?? 'gone'}, tried ${tried === undefined ? 'nothing' : (tried.n ?? 'to destroy')}`;
    if (found === undefined) {
      if (value === undefined) return [];
      if (tried === undefined || tried.n !== undefined) return [`${said}; it is gone`];
      this.#values.delete(key);
      this.unheard++;
      return [];
    }
    if (found.n !== value?.n) {
      if (tried?.n !== found.n) return [`${said}; found ${found.n} at ${found.version}`];
      this.unheard++;
      this.#values.set(key, this.#valueOf(key, found.n, found.version, tried.finalizers, found.updated));
    }
    this.#name(Number(found.version), `${key} ${found.n}`);
    const { version, since } = this.#values.get(key) as Value;
    const wrong: string[] = [];
    if (found.version !== version) wrong.push(`${said}; its version was ${version}, it is ${found.version}`);
    const notes = (found.notes ?? []).map((note) => `${note.finalizer} since ${note.since}`);
    const known = found.finalizers.map((finalizer) => `${finalizer} since ${since.get(finalizer)}`);
    if (notes.join() !== known.join() || found.finalizers.length !== since.size)
      wrong.push(`${said}; its finalizers are ${notes.join()}, they should be ${known.join()} of ${[...since.keys()].join()}`);
    return wrong;
  }

  /** Every revision after a bookmark is one event, none is missing, and it says what was acknowledged. */
  #follow(from: number, to: number, events: readonly FoundEvent[], items: readonly Found[]): readonly string[] {
    const wrong: string[] = [];
    const last = new Map<string, string>();
    let expected = from;
    for (const { type, revision, resource, old } of events) {
      const key = `${resource.type}/${resource.id}`;
      if (revision !== ++expected) wrong.push(`after the bookmark of ${from}: revision ${revision} came instead of ${expected}`);
      expected = revision;
      const before = last.get(key);
      if (before !== undefined && type === 'updated' && before !== old)
        wrong.push(`event ${revision} replaces ${old}, ${before} was there`);
      if (type === 'destroyed') {
        if (before !== undefined && before !== resource.version) wrong.push(`event ${revision} ends ${resource.version}, not ${before}`);
        this.#name(revision, `${key} is destroyed`);
        last.set(key, 'gone');
        continue;
      }
      if (Number(resource.version) !== revision) wrong.push(`event ${revision} carries version ${resource.version}`);
      this.#name(revision, `${key} ${resource.n}`);
      last.set(key, resource.version);
    }
    if (expected !== to) wrong.push(`after the bookmark of ${from}: it ends at ${expected}, the store is at ${to}`);
    const found = new Map(items.map((item) => [`${item.type}/${item.id}`, item.version]));
    for (const [key, version] of last)
      if (version !== (found.get(key) ?? 'gone')) wrong.push(`${key} is ${found.get(key) ?? 'gone'}, its events end with ${version}`);
    return wrong;
  }
}
