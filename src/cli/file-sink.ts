import { randomBytes } from 'node:crypto';
import type { FileHandle } from 'node:fs/promises';
import { open, rename, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { visibleText } from '../resource/index.ts';
import { ExitError, exitCodes } from './exit-codes.ts';

/** Text is handed to the system in pieces of about this size, characters. */
const pieceSize = 256 * 1024;

/** A file that is written bit by bit, and is there under its name only once it is whole and on disk. Only its owner may read it. */
export class FileSink {
  readonly #path: string;
  readonly #temporary: string;
  readonly #handle: FileHandle;
  #waiting = '';

  private constructor(path: string, temporary: string, handle: FileHandle) {
    this.#path = path;
    this.#temporary = temporary;
    this.#handle = handle;
  }

  static async open(path: string): Promise<FileSink> {
    const temporary = join(dirname(path), `.${basename(path).slice(0, 40)}.${randomBytes(6).toString('hex')}.tmp`);
    return new FileSink(path, temporary, await writing(path, () => open(temporary, 'wx', 0o600)));
  }

  async write(text: string): Promise<void> {
    this.#waiting += text;
    if (this.#waiting.length >= pieceSize) await this.#flush();
  }

  async finish(): Promise<void> {
    await this.#flush();
    await writing(this.#path, async () => {
      await this.#handle.sync();
      await this.#handle.close();
      await rename(this.#temporary, this.#path);
      const folder = await open(dirname(this.#path), 'r');
      await folder.sync().finally(() => folder.close());
    });
  }

  async discard(): Promise<void> {
    await this.#handle.close().catch(() => {});
    await rm(this.#temporary, { force: true });
  }

  async #flush(): Promise<void> {
    const text = this.#waiting;
    this.#waiting = '';
    await writing(this.#path, () => this.#handle.writeFile(text));
  }
}

/** Failures of the system, with the file that they are about and what to do. */
async function writing<Value>(path: string, work: () => Promise<Value>): Promise<Value> {
  try {
    return await work();
  } catch (error) {
    const { code = '', message } = error as NodeJS.ErrnoException;
    const advice = /^(?:ENOSPC|EFBIG|EDQUOT)$/.test(code) ? 'make room, or name a file elsewhere' : 'check its folder and its permissions';
    throw new ExitError(exitCodes.failed, `${visibleText(`${path} could not be written: ${message}`)}; ${advice}`);
  }
}

/** Puts what can be read only once into a file of its own; remove it when it is done with. */
export async function spool(chunks: AsyncIterable<Uint8Array>): Promise<string> {
  const path = join(tmpdir(), `steadystate-${randomBytes(8).toString('hex')}.import`);
  const handle = await writing(path, () => open(path, 'wx', 0o600));
  try {
    for await (const chunk of chunks) await writing(path, () => handle.writeFile(chunk));
    return path;
  } catch (error) {
    await rm(path, { force: true });
    throw error;
  } finally {
    await handle.close();
  }
}
