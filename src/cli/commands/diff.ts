import type { Resource } from '../../resource/index.ts';
import { stringifyYaml } from '../../wire/index.ts';
import type { CommandContext } from '../context.ts';
import { withSession } from '../context.ts';
import { exitCodes, UsageError } from '../exit-codes.ts';
import { lastAppliedAnnotation, planApply, validateBundle } from '../files/apply-resources.ts';
import { loadResourceFiles } from '../files/load-files.ts';
import { diffText } from '../output/line-diff.ts';
import { shownName } from '../output/names.ts';
import { TypesLookup } from '../types-lookup.ts';

/** `diff -f FILE…`: what apply would change; 6 when there is something. */
export async function diffCommand(context: CommandContext, options: { readonly filename: readonly string[] }): Promise<number> {
  if (options.filename.length === 0) throw new UsageError('name what to compare with -f FILE, a folder, or - for standard input');
  const { io, environment } = context;
  return withSession(context, async (session) => {
    const types = await TypesLookup.read(session.state, environment);
    const files = await loadResourceFiles(options.filename, { io, environment, types, namespace: context.options.namespace });
    const planned = await planApply(session.state, await validateBundle(session, files));
    let differs = false;
    for (const { current, next } of planned) {
      if (next === undefined) continue;
      const difference = diffText(current === undefined ? '' : declared(current, types), declared(next, types));
      // Apply would only note for itself what it had set.
      if (difference === '') continue;
      differs = true;
      io.write(`${shownName(next.metadata)} (${current === undefined ? 'new' : 'changed'})\n${difference}`);
    }
    return differs ? exitCodes.differences : exitCodes.ok;
  });
}

/** The half of a resource that people declare, as text. Sensitive values are masked. */
export function declared(resource: Resource, types: TypesLookup): string {
  return stringifyYaml(declaredForm(resource, types));
}

/** The half of a resource that people declare. */
export function declaredForm(resource: Resource, types: TypesLookup): Record<string, unknown> {
  const { metadata } = resource;
  const { [lastAppliedAnnotation]: _applied, ...annotations } = metadata.annotations;
  const { namespace, type, id, labels, finalizers } = metadata;
  return {
    metadata: {
      namespace,
      type,
      id,
      ...(finalizers.length > 0 && { finalizers }),
      ...(Object.keys(labels).length > 0 && { labels }),
      ...(Object.keys(annotations).length > 0 && { annotations }),
    },
    spec: types.shown(resource),
  };
}
