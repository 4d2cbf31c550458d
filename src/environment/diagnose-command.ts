import { constants } from 'node:fs';
import { access, open, stat } from 'node:fs/promises';
import { basename, delimiter, isAbsolute, join, resolve as resolvePath } from 'node:path';
import type { SpawnRequest } from './processes.ts';

/** Rejects with ENOENT or ENOTDIR, naming the folder. */
export async function checkDirectory(directory: string): Promise<void> {
  const found = await stat(directory).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT')
      throw Object.assign(new Error(`the folder ${directory} does not exist`), { code: 'ENOENT', path: directory });
    throw error;
  });
  if (!found.isDirectory()) throw Object.assign(new Error(`${directory} is not a folder`), { code: 'ENOTDIR', path: directory });
}

/** Tells why a command cannot start; `undefined` when it looks fine. */
export async function diagnose({ command: [program], directory, environment }: SpawnRequest): Promise<string | undefined> {
  try {
    await checkDirectory(directory);
  } catch (error) {
    return (error as Error).message;
  }
  const path = await findProgram(program, directory, environment.PATH);
  if (path === undefined) {
    return program.includes('/')
      ? `the program ${program} does not exist`
      : `the program ${program} was not found in PATH (${environment.PATH ?? 'unset'})${await beside(program, directory)}`;
  }
  const found = await stat(path);
  if (found.isDirectory()) return `${path} is a folder, not a program`;
  if (!(await executable(path))) return `${path} may not be executed: it has no execute bit (chmod +x)`;
  return await diagnoseInterpreter(path, directory, environment.PATH);
}

/** A shell's habit: a program of the folder itself needs a path. */
async function beside(program: string, directory: string): Promise<string> {
  return (await exists(join(directory, program))) ? `; write ./${program} for the one in ${directory}` : '';
}

/** A script names its interpreter in its first line, mostly by way of `env`. */
async function diagnoseInterpreter(path: string, directory: string, searchPath: string | undefined): Promise<string | undefined> {
  // As the kernel reads it: a carriage return is a part of the name.
  const [, interpreter, rest = ''] = /^#![ \t]*([^ \t\n]+)([^\n]*)/.exec(await firstBytes(path, 256)) ?? [];
  if (interpreter === undefined) return undefined;
  if (interpreter.endsWith('\r') || rest.endsWith('\r'))
    return `the interpreter of ${path} is not found: its first line ends as on Windows; save it with plain line ends`;
  if (!(await exists(interpreter))) return `the interpreter ${interpreter} of ${path} does not exist`;
  if (basename(interpreter) !== 'env') return undefined;
  const program = rest.split(/\s+/).find((word) => word !== '' && !word.startsWith('-') && !word.includes('='));
  if (program === undefined || (await findProgram(program, directory, searchPath)) !== undefined) return undefined;
  return `the interpreter ${program} of ${path} was not found in PATH (${searchPath ?? 'unset'})`;
}

async function firstBytes(path: string, length: number): Promise<string> {
  const handle = await open(path, 'r').catch(() => undefined);
  // A program may be executable without being readable.
  if (handle === undefined) return '';
  try {
    const { buffer, bytesRead } = await handle.read(Buffer.alloc(length), 0, length, 0);
    return buffer.toString('latin1', 0, bytesRead);
  } finally {
    await handle.close();
  }
}

/** As a shell finds it: a file that may be executed, else the first that has the name. */
async function findProgram(program: string, directory: string, searchPath = '/usr/bin:/bin'): Promise<string | undefined> {
  if (program.includes('/')) {
    const path = isAbsolute(program) ? program : resolvePath(directory, program);
    return (await exists(path)) ? path : undefined;
  }
  let unusable: string | undefined;
  for (const folder of searchPath.split(delimiter)) {
    const path = join(resolvePath(directory, folder), program);
    const found = await stat(path).catch(() => undefined);
    if (found === undefined || found.isDirectory()) continue;
    if (await executable(path)) return path;
    unusable ??= path;
  }
  return unusable;
}

function exists(path: string): Promise<boolean> {
  return allowed(path, constants.F_OK);
}

function executable(path: string): Promise<boolean> {
  return allowed(path, constants.X_OK);
}

function allowed(path: string, mode: number): Promise<boolean> {
  return access(path, mode).then(
    () => true,
    () => false,
  );
}
