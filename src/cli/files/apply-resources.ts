import { baseDirectoryAnnotation, stackDefinition } from '../../host/index.ts';
import type { Pointer, Resource } from '../../resource/index.ts';
import {
  findError,
  isAlreadyExistsError,
  isForbiddenError,
  isNotFoundError,
  isVersionConflictError,
  makeResource,
  namespaceDefinition,
  pointerText,
  SteadystateError,
  sameValue,
  visibleText,
} from '../../resource/index.ts';
import type { State } from '../../state/index.ts';
import { phaseConflict, versionConflict } from '../../state/index.ts';
import { errorText } from '../advice.ts';
import { ExitError, exitCodeOf, exitCodes } from '../exit-codes.ts';
import type { Session } from '../session.ts';
import type { FileResource } from './load-files.ts';

/** Which labels and annotations the last apply had set: what it sets no more is removed. */
export const lastAppliedAnnotation = 'steadystate.dev/last-applied';

export type ApplyVerb = 'created' | 'configured' | 'unchanged';

export interface Applied {
  readonly resource: Resource;
  readonly verb: ApplyVerb;
}

/** What apply would write for one resource. */
export interface Planned {
  readonly file: FileResource;
  readonly current: Resource | undefined;
  /** `undefined`: nothing would change. */
  readonly next: Resource | undefined;
}

/** Checks a whole bundle before anything is written, and notes in stacks which folder theirs is relative to. */
export async function validateBundle(session: Pick<Session, 'validate'>, files: readonly FileResource[]): Promise<readonly FileResource[]> {
  return (await checkBundle(session, files)).map((file) => ({ ...file, resource: withBase(file) }));
}

/** Checks a whole bundle; every problem is told with its place. The resources are as they would be stored. */
export async function checkBundle(session: Pick<Session, 'validate'>, files: readonly FileResource[]): Promise<readonly FileResource[]> {
  const seen = new Map<string, FileResource>();
  for (const file of files) {
    const name = pointerText(file.resource.metadata);
    const other = seen.get(name);
    if (other !== undefined)
      throw new SteadystateError('Invalid', `${file.at('metadata.id')}: ${name} stands here twice, first at ${other.at('metadata.id')}`);
    seen.set(name, file);
  }
  const { problems, resources } = await session.validate(files.map((file) => file.resource));
  if (problems.length > 0) {
    const lines = problems.map(({ index, path, message }) => {
      const file = files[index] as FileResource;
      return `${file.at(path)}: ${pointerText(file.resource.metadata)}: ${path === '' ? '' : `${path}: `}${visibleText(message)}`;
    });
    throw new ExitError(exitCodes.failed, `nothing was written:\n${lines.join('\n')}`);
  }
  return files.map((file, index) => ({ ...file, resource: resources[index] as Resource }));
}

/** A stack's relative folder is relative to its file: the folder of the file is recorded. */
function withBase({ folder, resource }: FileResource): Resource {
  const { metadata, spec } = resource;
  if (metadata.type !== stackDefinition.type || metadata.annotations[baseDirectoryAnnotation] !== undefined) return resource;
  return makeResource({ metadata: { ...metadata, annotations: { ...metadata.annotations, [baseDirectoryAnnotation]: folder } }, spec });
}

/** What apply would do; owners and phases are checked for all before the first write. */
export async function planApply(state: State, files: readonly FileResource[]): Promise<readonly Planned[]> {
  const planned: Planned[] = [];
  for (const file of files) planned.push(await planOne(state, file));
  return planned;
}

async function planOne(state: State, file: FileResource): Promise<Planned> {
  const { metadata, spec } = file.resource;
  const current = await find(state, metadata);
  if (current === undefined) {
    if (file.version !== undefined && file.version !== 'undefined')
      throw versionConflict(metadata, file.version, 'nothing: it does not exist');
    return {
      file,
      current,
      next: makeResource({
        metadata: { ...metadata, annotations: { ...metadata.annotations, [lastAppliedAnnotation]: appliedKeys(file.resource) } },
        spec,
      }),
    };
  }
  if (current.metadata.phase === 'tearingDown') throw phaseConflict(metadata, 'running', 'tearingDown');
  if (current.metadata.owner !== '') {
    throw new SteadystateError(
      'Conflict',
      `${pointerText(metadata)} is owned by the controller ${visibleText(current.metadata.owner)}; change what it is made from instead`,
      { reason: 'owner', pointer: metadata },
    );
  }
  if (file.version !== undefined && file.version !== current.metadata.version)
    throw versionConflict(metadata, file.version, current.metadata.version);
  const before = readAppliedKeys(current);
  const labels = merged(current.metadata.labels, metadata.labels, before.labels);
  const annotations = {
    ...merged(current.metadata.annotations, metadata.annotations, before.annotations),
    [lastAppliedAnnotation]: appliedKeys(file.resource),
  };
  const finalizers = [...new Set([...current.metadata.finalizers, ...metadata.finalizers])];
  const same =
    sameValue(spec, current.spec) &&
    sameValue(labels, current.metadata.labels) &&
    sameValue(annotations, current.metadata.annotations) &&
    finalizers.length === current.metadata.finalizers.length;
  return {
    file,
    current,
    next: same ? undefined : makeResource({ metadata: { ...current.metadata, labels, annotations, finalizers }, spec }),
  };
}

/** Writes one resource; tried again when somebody else wrote meanwhile, unless the file asks for a version. */
export async function applyOne(state: State, file: FileResource): Promise<Applied> {
  for (let tries = 5; ; tries--) {
    const { current, next } = await planOne(state, file);
    if (next === undefined) return { resource: current as Resource, verb: 'unchanged' };
    try {
      if (current === undefined) return { resource: await state.create(next), verb: 'created' };
      return { resource: await state.update(next), verb: 'configured' };
    } catch (error) {
      const raced = current === undefined ? findError(error)?.reason === 'alreadyExists' : isVersionConflictError(error);
      if (!raced || file.version !== undefined || tries === 0) throw error;
    }
  }
}

/** Applies all, one by one; what was written and what not is told. Answers the worst exit code. */
export async function applyAll(
  session: Session,
  files: readonly FileResource[],
  tell: (applied: Applied) => void,
  tellError: (text: string) => void,
): Promise<{ readonly exitCode: number; readonly applied: readonly Applied[] }> {
  const valid = await validateBundle(session, files);
  const planned = await planApply(session.state, valid);
  await registerNamespaces(
    session.state,
    new Set(planned.filter(({ next }) => next !== undefined).map(({ file }) => file.resource.metadata.namespace)),
  );
  let exitCode: number = exitCodes.ok;
  const applied: Applied[] = [];
  for (const file of valid) {
    try {
      const one = await applyOne(session.state, file);
      applied.push(one);
      tell(one);
    } catch (error) {
      tellError(`${file.at('')}: ${errorText(error).trimEnd()}`);
      exitCode = Math.max(exitCode, exitCodeOf(error));
    }
  }
  return { exitCode, applied };
}

/** A namespace that something is put into becomes one that `namespaces` and `-A` know. */
async function registerNamespaces(state: State, names: ReadonlySet<string>): Promise<void> {
  for (const name of names) {
    try {
      if ((await find(state, namespaceDefinition.pointer(name))) === undefined)
        await state.create(namespaceDefinition.create({ id: name, spec: { description: '' } }));
    } catch (error) {
      // Somebody else did it just now; or it is not ours to do, which does not stop what is.
      if (!isAlreadyExistsError(error) && !isForbiddenError(error)) throw error;
    }
  }
}

async function find(state: State, pointer: Pointer): Promise<Resource | undefined> {
  try {
    return await state.get(pointer);
  } catch (error) {
    if (isNotFoundError(error)) return undefined;
    throw error;
  }
}

function appliedKeys({ metadata }: Resource): string {
  return JSON.stringify({
    labels: Object.keys(metadata.labels).sort(),
    annotations: Object.keys(metadata.annotations)
      .filter((key) => key !== lastAppliedAnnotation)
      .sort(),
  });
}

function readAppliedKeys({ metadata }: Resource): { readonly labels: readonly string[]; readonly annotations: readonly string[] } {
  try {
    const { labels = [], annotations = [] } = JSON.parse(metadata.annotations[lastAppliedAnnotation] ?? '{}') as {
      labels?: readonly string[];
      annotations?: readonly string[];
    };
    return { labels, annotations };
  } catch {
    // Somebody else wrote it: then nothing is known to be ours.
    return { labels: [], annotations: [] };
  }
}

/** What is there, without what the last apply had set, with what this one sets. */
function merged(
  current: Readonly<Record<string, string>>,
  wanted: Readonly<Record<string, string>>,
  before: readonly string[],
): Readonly<Record<string, string>> {
  const kept = Object.fromEntries(Object.entries(current).filter(([key]) => !before.includes(key) && key !== lastAppliedAnnotation));
  return { ...kept, ...wanted };
}
