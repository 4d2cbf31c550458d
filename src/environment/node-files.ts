import { randomBytes } from 'node:crypto';
import { watch as watchPath } from 'node:fs';
import * as fs from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import type { FilePort, FileStat } from './files.ts';
import type { OpenCounter } from './open-counter.ts';

/** The machine's files. */
export function nodeFiles(open: OpenCounter): FilePort {
  return {
    read: (path, options) => (options?.maxBytes === undefined ? fs.readFile(path) : readAtMost(path, options.maxBytes)),
    async readRange(path, offset, length) {
      const handle = await fs.open(path, 'r');
      try {
        const buffer = new Uint8Array(length);
        let filled = 0;
        while (filled < length) {
          const { bytesRead } = await handle.read(buffer, filled, length - filled, offset + filled);
          if (bytesRead === 0) break;
          filled += bytesRead;
        }
        return buffer.subarray(0, filled);
      } finally {
        await handle.close();
      }
    },
    stat: (path) => absent(async () => describe(await fs.lstat(path, { bigint: true }))),
    list: (path) =>
      absent(async () => (await fs.readdir(path)).sort((left, right) => Buffer.compare(Buffer.from(left), Buffer.from(right)))),
    async makeDirectory(path, options) {
      await fs.mkdir(path, { recursive: true, ...(options?.mode !== undefined && { mode: options.mode }) });
    },
    async writeTemporary(path, content, { mode }) {
      const temporary = join(dirname(path), `.${basename(path).slice(0, 40)}.${randomBytes(6).toString('hex')}.tmp`);
      const handle = await fs.open(temporary, 'wx', mode);
      try {
        // The umask may have taken bits away.
        await handle.chmod(mode);
        await handle.writeFile(content);
      } catch (error) {
        await fs.rm(temporary, { force: true });
        throw error;
      } finally {
        await handle.close();
      }
      return temporary;
    },
    async sync(path) {
      const handle = await fs.open(path, 'r');
      try {
        await handle.sync();
      } finally {
        await handle.close();
      }
    },
    rename: (from, to) => fs.rename(from, to),
    changeMode: (path, mode) => fs.chmod(path, mode),
    remove: async (path) => (await absent(() => fs.unlink(path).then(() => true))) ?? false,
    async removeDirectory(path) {
      try {
        await fs.rmdir(path);
        return true;
      } catch (error) {
        if (['ENOENT', 'ENOTEMPTY', 'EEXIST'].includes(codeOf(error))) return false;
        throw error;
      }
    },
    truncate: (path, length) => fs.truncate(path, length),
    copy: (from, to) => fs.copyFile(from, to),
    realPath: (path) => fs.realpath(path),
    async watch(path, onChange) {
      const watcher = watchPath(path, { persistent: false }, () => onChange());
      // A watched folder that goes away is a change, not a failure.
      watcher.on('error', () => onChange());
      const tracked = open.track('fileWatch');
      return {
        [Symbol.dispose]: () => {
          watcher.close();
          tracked[Symbol.dispose]();
        },
      };
    },
  };
}

function describe(stat: import('node:fs').BigIntStats): FileStat {
  return {
    kind: stat.isFile() ? 'file' : stat.isDirectory() ? 'directory' : stat.isSymbolicLink() ? 'symlink' : 'other',
    size: Number(stat.size),
    mode: Number(stat.mode & 0o7777n),
    modifiedMs: Number(stat.mtimeMs),
    identity: `${stat.dev}:${stat.ino}`,
  };
}

function codeOf(error: unknown): string {
  return (error as { code?: string }).code ?? '';
}

/** `undefined` instead of the error when nothing is there. */
async function absent<Value>(look: () => Promise<Value>): Promise<Value | undefined> {
  try {
    return await look();
  } catch (error) {
    if (codeOf(error) === 'ENOENT' || codeOf(error) === 'ENOTDIR') return undefined;
    throw error;
  }
}

async function readAtMost(path: string, maxBytes: number): Promise<Uint8Array> {
  const handle = await fs.open(path, 'r');
  try {
    const chunks: Uint8Array[] = [];
    let length = 0;
    for (;;) {
      const { buffer, bytesRead } = await handle.read(new Uint8Array(64 * 1024), 0, 64 * 1024, null);
      if (bytesRead === 0) return Buffer.concat(chunks);
      length += bytesRead;
      if (length > maxBytes) throw Object.assign(new Error(`EFBIG: ${path} holds more than ${maxBytes} bytes`), { code: 'EFBIG', path });
      chunks.push(buffer.subarray(0, bytesRead));
    }
  } finally {
    await handle.close();
  }
}
