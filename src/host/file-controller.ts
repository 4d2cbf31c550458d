import { posix } from 'node:path';
import type { Environment, FilePort, FileStat } from '../environment/index.ts';
import type { Pointer, Resource } from '../resource/index.ts';
import { digest, pointerText } from '../resource/index.ts';
import type { ControllerContext, Namespaces, QueueController, ReconcileResult } from '../runtime/index.ts';
import { inputsIn, namespacesWith } from '../runtime/index.ts';
import {
  find,
  finish,
  keyOf,
  readStatus,
  removeCompanion,
  systemCode,
  systemText,
  tellingFailure,
  wakeAbandoned,
  writeStatus,
} from './companion.ts';
import type { FileSpec, FileStatus } from './file-definitions.ts';
import { fileDefinition, fileStatusDefinition } from './file-definitions.ts';
import { FolderWatches } from './folder-watches.ts';
import { filesController } from './names.ts';
import { outsideProblem } from './paths.ts';

export interface PathControllerOptions {
  readonly environment: Environment;
  readonly namespaces: Namespaces;
  /** How often the disk is looked at although no watch told anything, milliseconds. */
  readonly pollMs: number;
}

/** Keeps declared files on disk as they are declared. */
export function fileController(options: PathControllerOptions): QueueController {
  const keeper = new FileKeeper(options);
  return {
    name: filesController,
    concurrency: 16,
    inputs: inputsIn(options.namespaces, fileDefinition.type, 'primary'),
    outputs: [{ type: fileStatusDefinition.type, kind: 'exclusive' }],
    reconcile: (context, { pointer }) => keeper.reconcile(context, pointer),
    async run(context) {
      keeper.start(context.wake);
      await wakeAbandoned(context, options.namespaces, fileDefinition, fileStatusDefinition);
    },
    shutdown: async () => keeper.close(),
  };
}

/** Something is wrong that only a change of the declaration or of the disk can mend. */
class FileProblem extends Error {
  readonly reason: string;
  constructor(reason: string, message: string) {
    super(message);
    this.reason = reason;
  }
}

class FileKeeper {
  readonly #files: FilePort;
  readonly #namespaces: Namespaces;
  readonly #pollMs: number;
  readonly #watches: FolderWatches;
  /** Which resource holds a path. */
  readonly #claims = new Map<string, string>();
  /** Files that were looked at by this instance. */
  readonly #known = new Map<string, Pointer>();
  #wake: ((pointer: Pointer) => void) | undefined;

  constructor({ environment, namespaces, pollMs }: PathControllerOptions) {
    this.#files = environment.files;
    this.#namespaces = namespaces;
    this.#pollMs = pollMs;
    this.#watches = new FolderWatches(environment, (key) => {
      const pointer = this.#known.get(key);
      if (pointer !== undefined) this.#wake?.(pointer);
    });
  }

  start(wake: (pointer: Pointer) => void): void {
    this.#wake = wake;
  }

  close(): void {
    this.#watches.close();
  }

  async reconcile(context: ControllerContext, pointer: Pointer): Promise<ReconcileResult | void> {
    const resource = await find(context, fileDefinition.pointer(pointer.id, pointer.namespace));
    if (resource === undefined) {
      // It went although our finalizer was on it. A record that nobody's is would keep its path from others.
      await removeCompanion(context, fileStatusDefinition, pointer);
      return this.#forget(pointer);
    }
    const status = await readStatus(context, fileStatusDefinition, resource);
    if (resource.metadata.phase === 'tearingDown') {
      if (!resource.metadata.finalizers.includes(filesController)) return;
      if (status !== undefined) await tellingFailure(context, fileStatusDefinition, resource, status, () => this.#removeOurs(status));
      await finish(context, fileStatusDefinition, pointer, filesController);
      return this.#forget(pointer);
    }
    if (!resource.metadata.finalizers.includes(filesController)) await context.addFinalizer(pointer, filesController);
    const { spec } = fileDefinition.from(resource);
    const base = { uid: resource.metadata.uid, observed: digest(resource.spec), path: spec.path };
    try {
      await this.#keep(context, resource, spec, status, base);
    } catch (error) {
      context.signal.throwIfAborted();
      const problem = error instanceof FileProblem;
      if (!problem && systemCode(error) === '') throw error;
      const recorded = (await readStatus(context, fileStatusDefinition, resource)) ?? status;
      const kept = recorded?.path === spec.path ? recorded.kept : undefined;
      await writeStatus(context, fileStatusDefinition, pointer, {
        ...base,
        state: 'Failed',
        ready: false,
        reason: problem ? error.reason : 'CannotWrite',
        message: problem ? error.message : systemText(error),
        corrections: recorded?.corrections ?? 0,
        // A failure must not make ours what is not.
        ours: recorded?.path === spec.path && recorded.ours,
        ...(kept !== undefined && { kept }),
      });
      if (!problem) throw error;
    }
    return { requeueAfterMs: this.#pollMs };
  }

  async #keep(
    context: ControllerContext,
    resource: Resource,
    spec: FileSpec,
    before: FileStatus | undefined,
    base: Pick<FileStatus, 'uid' | 'observed' | 'path'>,
  ): Promise<void> {
    const pointer = resource.metadata;
    const key = keyOf(pointer);
    const save = (more: Pick<FileStatus, 'state' | 'corrections' | 'ours'> & { readonly kept: string | undefined }): Promise<void> => {
      const { kept, ...rest } = more;
      const ready = more.state === 'Written';
      return writeStatus(context, fileStatusDefinition, pointer, {
        ...base,
        ...rest,
        ready,
        reason: ready ? '' : 'Writing',
        message: '',
        ...(kept !== undefined && { kept }),
      });
    };
    if (before !== undefined && before.path !== spec.path) await this.#removeOurs(before);
    const record = before?.path === spec.path ? before : undefined;
    await this.#claim(context, pointer, spec.path, record?.ours === true);
    const outside = await outsideProblem(this.#files, spec.path, spec.within);
    if (outside !== undefined) throw new FileProblem('OutsideDirectory', outside);
    const folder = posix.dirname(spec.path);
    if (!this.#known.has(key)) await this.#removeTemporaries(spec.path);
    this.#known.set(key, { namespace: pointer.namespace, type: pointer.type, id: pointer.id });
    let found = await this.#files.stat(spec.path);
    if (found?.kind === 'directory')
      throw new FileProblem('PathIsFolder', `${spec.path} is a folder; move it away, or choose another path for the file`);
    const corrections = record?.corrections ?? 0;
    let kept = record?.kept;
    if (await this.#asDeclared(spec, found)) {
      await this.#watches.watch(folder, key);
      return save({ state: 'Written', ours: true, corrections, kept });
    }
    if (record?.ours !== true) {
      if (found !== undefined) kept ??= await this.#freeName(spec.path);
      // Recorded before it is done, so that a crash in between neither overwrites what was there nor moves it twice.
      await save({ state: 'Writing', ours: found === undefined, corrections, kept });
      if (found !== undefined && kept !== undefined && (await this.#files.stat(kept)) === undefined) {
        await this.#files.rename(spec.path, kept);
        context.log.log('warn', 'a file that was there before is kept under another name', { path: spec.path, kept });
        found = undefined;
      }
    }
    await this.#write(spec, found);
    await this.#watches.watch(folder, key);
    const drifted = record?.state === 'Written' && record.observed === base.observed;
    if (drifted) context.log.log('info', 'a file that was changed on disk is put right', { path: spec.path });
    await save({ state: 'Written', ours: true, corrections: corrections + (drifted ? 1 : 0), kept });
  }

  /** One path has one holder: who has a record of it, else who came first. */
  async #claim(context: ControllerContext, pointer: Pointer, path: string, recorded: boolean): Promise<void> {
    const key = keyOf(pointer);
    let holder = this.#claims.get(path);
    if (holder === undefined && !recorded) {
      for (const namespace of await namespacesWith(context, this.#namespaces, fileStatusDefinition.type)) {
        const { items } = await context.list(fileStatusDefinition.kind(namespace));
        const other = items.find((item) => item.spec.path === path && item.spec.ours && keyOf(item.metadata) !== key);
        if (other !== undefined) holder = keyOf(other.metadata);
      }
    }
    holder ??= key;
    this.#claims.set(path, holder);
    if (holder === key) {
      // Where it was declared to be before, others may be now.
      for (const [other, claimed] of this.#claims) if (claimed === key && other !== path) this.#claims.delete(other);
      return;
    }
    const [namespace = '', id = ''] = JSON.parse(holder) as string[];
    throw new FileProblem(
      'PathTaken',
      `${path} is declared by ${pointerText(fileDefinition.pointer(id, namespace))} too; give one of them another path or directory`,
    );
  }

  async #asDeclared(spec: FileSpec, found: FileStat | undefined): Promise<boolean> {
    if (found?.kind !== 'file' || found.mode !== modeOf(spec)) return false;
    const wanted = Buffer.from(spec.content);
    return found.size === wanted.length && wanted.equals(await this.#files.read(spec.path));
  }

  /** Whole or not at all, whatever happens in between. */
  async #write(spec: FileSpec, found: FileStat | undefined): Promise<void> {
    const files = this.#files;
    const folder = posix.dirname(spec.path);
    await files.makeDirectory(folder);
    const wanted = Buffer.from(spec.content);
    if (found?.kind === 'file' && found.size === wanted.length && (await this.#holds(spec.path, wanted)))
      return files.changeMode(spec.path, modeOf(spec));
    const temporary = await files.writeTemporary(spec.path, wanted, { mode: modeOf(spec) });
    try {
      await files.sync(temporary);
      await files.rename(temporary, spec.path);
    } catch (error) {
      await files.remove(temporary);
      throw error;
    }
    await files.sync(folder);
  }

  /** A file that may not even be read is replaced like any other that is not as declared. */
  async #holds(path: string, wanted: Buffer): Promise<boolean> {
    try {
      return wanted.equals(await this.#files.read(path));
    } catch (error) {
      if (systemCode(error) === 'EACCES') return false;
      throw error;
    }
  }

  /** What a crash between writing and renaming left. */
  async #removeTemporaries(path: string): Promise<void> {
    const folder = posix.dirname(path);
    const base = posix.basename(path);
    for (const name of (await this.#files.list(folder)) ?? []) {
      // As `writeTemporary` names them; a long name is cut there.
      const start = /^\.(.+)\.[0-9a-f]{12}\.tmp$/.exec(name)?.[1];
      if (start !== undefined && (start === base || (start.length >= 30 && base.startsWith(start))))
        await this.#files.remove(posix.join(folder, name));
    }
  }

  async #removeOurs({ path, kept, ours }: FileStatus): Promise<void> {
    // Moved away, and then stopped by a crash: what is there now is ours.
    const taken = ours || (kept !== undefined && (await this.#files.stat(kept)) !== undefined);
    if (!taken) return;
    const found = await this.#files.stat(path);
    if (found !== undefined && found.kind !== 'directory') {
      await this.#files.remove(path);
      await this.#files.sync(posix.dirname(path));
    }
    await this.#removeTemporaries(path);
  }

  async #freeName(path: string): Promise<string> {
    for (let count = 0; ; count++) {
      const name = `${path}.orig${count === 0 ? '' : count}`;
      if ((await this.#files.stat(name)) === undefined) return name;
    }
  }

  #forget(pointer: Pointer): void {
    const key = keyOf(pointer);
    this.#watches.unwatch(key);
    this.#known.delete(key);
    for (const [path, holder] of this.#claims) if (holder === key) this.#claims.delete(path);
  }
}

function modeOf(spec: FileSpec): number {
  return Number.parseInt(spec.mode ?? '0644', 8);
}
