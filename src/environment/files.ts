export interface FileStat {
  readonly kind: 'file' | 'directory' | 'symlink' | 'other';
  readonly size: number;
  /** Permission bits only (`0o644`). */
  readonly mode: number;
  readonly modifiedMs: number;
  /** Device and inode as text: tells whether two paths are one file, and whether a path still is the file that was opened. */
  readonly identity: string;
}

/** Files, asynchronous, effects apart. Every method rejects with the system's error (`code: 'ENOENT'`, …) unless it says otherwise. */
export interface FilePort {
  /** The whole content, also of a pipe; `EFBIG` as soon as there is more than `maxBytes`. */
  read(path: string, options?: { readonly maxBytes?: number }): Promise<Uint8Array>;
  /** Reads at most `length` bytes from `offset`; fewer at the end of the file. */
  readRange(path: string, offset: number, length: number): Promise<Uint8Array>;
  /** `undefined` when nothing is there. Does not follow a link at the end of the path. */
  stat(path: string): Promise<FileStat | undefined>;
  /** Names in a folder, ordered by their bytes; `undefined` when the folder is not there. */
  list(path: string): Promise<readonly string[] | undefined>;
  /** Creates the folder and its parents; does nothing when it is there. */
  makeDirectory(path: string, options?: { readonly mode?: number }): Promise<void>;
  /** Writes a new file beside `path`, with exactly that mode whatever the umask, and answers its path. */
  writeTemporary(path: string, content: Uint8Array, options: { readonly mode: number }): Promise<string>;
  /** fsync of a file or folder. */
  sync(path: string): Promise<void>;
  /** Atomic rename; replaces a file at `to`. */
  rename(from: string, to: string): Promise<void>;
  changeMode(path: string, mode: number): Promise<void>;
  /** Removes a file or link; `false` when it was not there. */
  remove(path: string): Promise<boolean>;
  /** Removes an empty folder; `false` when it was not there or is not empty. */
  removeDirectory(path: string): Promise<boolean>;
  truncate(path: string, length: number): Promise<void>;
  /** Copies content, replacing `to`. */
  copy(from: string, to: string): Promise<void>;
  /** Resolves links and dots to an absolute path. */
  realPath(path: string): Promise<string>;
  /** Calls back when something at or directly below `path` may have changed; best effort, poll as well. */
  watch(path: string, onChange: () => void): Promise<Disposable>;
}
