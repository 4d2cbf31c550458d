import { posix } from 'node:path';
import type { FilePort } from '../environment/index.ts';
import { systemCode } from './companion.ts';

/** Whether `path` is `folder` or lies below it; text only. */
export function isWithin(path: string, folder: string): boolean {
  return path === folder || path.startsWith(folder === '/' ? '/' : `${folder}/`);
}

/**
 * Why something at `path` would not lie in `folder` once links are followed; `undefined`: it does. Parents that are not
 * there yet cannot lead out of it.
 */
export async function outsideProblem(files: FilePort, path: string, folder: string): Promise<string | undefined> {
  if (!isWithin(posix.normalize(path), posix.normalize(folder))) return `${path} is outside ${folder}; choose a path below it`;
  let parent = posix.dirname(path);
  while (isWithin(parent, folder) && (await files.stat(parent)) === undefined) parent = posix.dirname(parent);
  if (!isWithin(parent, folder)) return undefined;
  try {
    const [real, realFolder] = await Promise.all([files.realPath(parent), files.realPath(folder)]);
    return isWithin(real, realFolder)
      ? undefined
      : `${path} is outside ${folder}: a link in its path leads to ${real}; remove the link, or choose another path`;
  } catch (error) {
    // A link to nowhere cannot hold anything.
    if (systemCode(error) === 'ENOENT') return `${path} cannot be there: a link in its path leads nowhere; remove the link`;
    throw error;
  }
}
