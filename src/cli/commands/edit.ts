import { join } from 'node:path';
import type { Resource } from '../../resource/index.ts';
import {
  isConflictError,
  isNotFoundError,
  makeResource,
  pointerText,
  SteadystateError,
  sameSet,
  sameValue,
  visibleText,
} from '../../resource/index.ts';
import { phaseConflict } from '../../state/index.ts';
import { stringifyYaml } from '../../wire/index.ts';
import { messageOf } from '../advice.ts';
import type { CommandContext } from '../context.ts';
import { withSession } from '../context.ts';
import { ExitError, exitCodeOf, exitCodes, UsageError } from '../exit-codes.ts';
import { checkBundle } from '../files/apply-resources.ts';
import type { FileResource } from '../files/load-files.ts';
import { loadResourceFiles } from '../files/load-files.ts';
import { fileForm } from '../output/format.ts';
import { shellWord, shownName } from '../output/names.ts';
import type { Session } from '../session.ts';
import type { Target } from '../target.ts';
import { refuseOwned, targetOf } from '../target.ts';

/** `edit TYPE ID`: opens it in $VISUAL or $EDITOR, and writes what was saved. Text that could not be written is kept. */
export async function editCommand(context: CommandContext, typeName: string, id: string): Promise<number> {
  const { io, environment } = context;
  const editor = io.variables.VISUAL || io.variables.EDITOR;
  if (!editor) throw new UsageError('set EDITOR (or VISUAL) to your editor, or change a file and use apply -f');
  return withSession(context, async (session) => {
    const target = await targetOf(context, session, typeName, id);
    const before = await session.state.get(target.pointer);
    refuseUneditable(before, target);
    const text = `${heading(before)}${stringifyYaml(editable(before))}`;
    const file = await temporaryFile(context, text);
    const exitCode = await io.openEditor(editor, file);
    const saved = await savedText(context, file);
    try {
      if (exitCode !== 0) throw new ExitError(exitCodes.failed, `the editor ended with ${exitCode}; nothing was written`);
      const after = saved === text ? undefined : await write(context, session, target, before, file);
      await environment.files.remove(file);
      io.write(`${shownName((after ?? before).metadata)} ${after === undefined ? 'unchanged' : 'edited'}\n`);
      return exitCodes.ok;
    } catch (error) {
      if (saved === text) {
        await environment.files.remove(file);
        throw error;
      }
      const advice = isConflictError(error) ? 'bring it up to date, its metadata.version too, then' : 'put it right, then';
      throw new ExitError(
        exitCodeOf(error),
        `${messageOf(error)}\nyour text is kept in ${file}; ${advice}: steadystate apply -f ${shellWord(file)}`,
      );
    }
  });
}

/** What the editor left. Nothing, or nothing that could be written, is no change. */
async function savedText({ environment: { files } }: CommandContext, file: string): Promise<string> {
  const there = await files.stat(file);
  if (there === undefined) throw new ExitError(exitCodes.failed, `the editor removed ${file}; nothing was written`);
  if (there.kind === 'directory' || there.kind === 'other')
    throw new ExitError(exitCodes.failed, `the editor left something else than a file at ${file}; nothing was written`);
  const text = new TextDecoder().decode(await files.read(file));
  if (text.trim() !== '') return text;
  await files.remove(file);
  throw new ExitError(exitCodes.failed, 'the text was emptied; nothing was written (to remove the resource: steadystate delete)');
}

function refuseUneditable(resource: Resource, { types, pointer }: Target): void {
  refuseOwned(resource);
  if (resource.metadata.phase === 'tearingDown') throw phaseConflict(pointer, 'running', 'tearingDown');
  if (types.byType(pointer.type)?.sensitivity === 'sensitive') {
    throw new SteadystateError(
      'Unsupported',
      `values of ${pointer.type} are sensitive: they are shown masked and are not put into a file; write them with apply -f`,
      { pointer },
    );
  }
}

function heading({ metadata }: Resource): string {
  return `# ${visibleText(pointerText(metadata))}: save and close to write it, close without a change to leave it.
# It is written only if nobody else changed it meanwhile.
`;
}

/** What can be changed, and the version that the change is made on. */
function editable(resource: Resource): unknown {
  const { metadata, spec } = fileForm(resource) as { readonly metadata: Readonly<Record<string, unknown>>; readonly spec: unknown };
  const { uid: _uid, phase: _phase, owner: _owner, created: _created, updated: _updated, ...shown } = metadata;
  return { metadata: shown, spec };
}

/** For this user's eyes only. */
async function temporaryFile({ io, environment }: CommandContext, text: string): Promise<string> {
  const { files } = environment;
  const path = join(io.variables.TMPDIR || '/tmp', `steadystate-edit-${environment.id()}.yaml`);
  await files.rename(await files.writeTemporary(path, new TextEncoder().encode(text), { mode: 0o600 }), path);
  return path;
}

/** Writes what was saved; `undefined`: it says what there was. */
async function write(
  { io, environment }: CommandContext,
  session: Session,
  { types, pointer }: Target,
  before: Resource,
  file: string,
): Promise<Resource | undefined> {
  const loaded = await loadResourceFiles([file], { io, environment, types, namespace: pointer.namespace });
  const [edited, ...others] = loaded as readonly [FileResource, ...FileResource[]];
  if (others.length > 0) throw new SteadystateError('Invalid', 'expected the one resource that was opened, found several', { pointer });
  const found = edited.resource.metadata;
  if (found.namespace !== pointer.namespace || found.type !== pointer.type || found.id !== pointer.id) {
    throw new SteadystateError(
      'Invalid',
      `${edited.at('metadata')}: namespace, type and id cannot be edited; expected ${pointerText(pointer)}, found ${pointerText(found)}`,
      { pointer },
    );
  }
  const [{ resource }] = (await checkBundle(session, [edited])) as readonly [FileResource];
  const { labels, annotations, finalizers } = resource.metadata;
  const version = edited.version ?? before.metadata.version;
  const same =
    sameValue(resource.spec, before.spec) &&
    sameValue(labels, before.metadata.labels) &&
    sameValue(annotations, before.metadata.annotations) &&
    sameSet(finalizers, before.metadata.finalizers);
  if (same) return undefined;
  try {
    return await session.state.update(
      makeResource({ metadata: { ...before.metadata, version, labels, annotations, finalizers }, spec: resource.spec }),
    );
  } catch (error) {
    if (!isNotFoundError(error)) throw error;
    throw new SteadystateError('NotFound', `${pointerText(pointer)} was removed while it was edited`, { pointer, cause: error });
  }
}
