import { spawn } from 'node:child_process';

/** Runs an editor on the person's terminal; its exit code. A shell reads the command, as git does: `EDITOR='code --wait'`. */
export function openEditor(editor: string, file: string): Promise<number> {
  return new Promise((resolve, reject) => {
    const child = spawn('/bin/sh', ['-c', `${editor} "$1"`, editor, file], { stdio: 'inherit' });
    child.once('error', reject);
    child.once('exit', (code) => resolve(code ?? 1));
  });
}
