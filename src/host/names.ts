/** The group of every type of this room. */
export const hostGroup = 'host.steadystate.dev';

/**
 * Annotation on a stack, written by whoever applies it: the absolute folder that a relative `directory` is relative to
 * (the folder of the file, or the caller's own for standard input).
 */
export const baseDirectoryAnnotation = `${hostGroup}/base-directory`;

const restartPrefix = `${hostGroup}/restart-at.`;

/** Annotation on a stack that asks to restart one of its services: a new value, one restart. */
export function restartAnnotation(service: string): string {
  return `${restartPrefix}${service}`;
}

/** The folder below a stack's directory that holds the output of its services. */
export const logsFolder = '.logs';

/** The id of a child: the stack, a slash, and what it is within the stack. */
export function childId(stack: string, name: string): string {
  return name === '' ? stack : `${stack}/${name}`;
}

/** A name as one step of a path: what could mean something else to a file system is written as %XX. */
export function pathStep(name: string): string {
  const encoded = name.replace(/[^A-Za-z0-9_.-]/gu, (character) => encodeURIComponent(character));
  return /^\.*$/.test(encoded) ? encoded.replaceAll('.', '%2E') : encoded;
}

/** The names of the controllers: what they make is owned by these. */
export const directoriesController = 'host-directories';
export const filesController = 'host-files';
export const processesController = 'host-processes';
export const stacksController = 'host-stacks';
