import { sameValue } from '../../resource/index.ts';
import type { CommandContext } from '../context.ts';
import { withSession } from '../context.ts';
import { exitCodes, UsageError } from '../exit-codes.ts';
import { shownName } from '../output/names.ts';
import { targetOf } from '../target.ts';

/** `label TYPE ID key=value… key-…`, and the same for annotations. */
export async function setPairsCommand(
  context: CommandContext,
  what: 'labels' | 'annotations',
  typeName: string,
  id: string,
  changes: readonly string[],
  options: { readonly overwrite?: boolean },
): Promise<number> {
  if (changes.length === 0) throw new UsageError(`name what to set (key=value) or to remove (key-)`);
  const parsed = changes.map((text) => parseChange(text));
  return withSession(context, async (session) => {
    const { pointer } = await targetOf(context, session, typeName, id);
    const before = await session.state.get(pointer);
    const { owner } = before.metadata;
    const after = await session.state.updateWithConflicts(
      pointer,
      (draft) => {
        for (const { key, value } of parsed) {
          const present = draft[what].get(key);
          if (value === undefined) draft[what].delete(key);
          else if (present !== undefined && present !== value && options.overwrite !== true)
            throw new UsageError(`${id} has ${key}=${present} already; add --overwrite to change it`);
          else draft[what].set(key, value);
        }
      },
      // Labels are for everybody; what a controller owns it may set back.
      { owner, expectedPhase: 'any' },
    );
    context.io.write(
      `${shownName(after.metadata)} ${sameValue(before.metadata[what], after.metadata[what]) ? 'unchanged' : what === 'labels' ? 'labelled' : 'annotated'}\n`,
    );
    return exitCodes.ok;
  });
}

function parseChange(text: string): { readonly key: string; readonly value: string | undefined } {
  const equals = text.indexOf('=');
  if (equals > 0) return { key: text.slice(0, equals), value: text.slice(equals + 1) };
  if (equals < 0 && text.length > 1 && text.endsWith('-')) return { key: text.slice(0, -1), value: undefined };
  throw new UsageError(`expected key=value, or key- to remove it, found ${text}`);
}
