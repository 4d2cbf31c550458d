import type { Resource } from '../../resource/index.ts';
import { stringifyYaml, visibleSpec } from '../../wire/index.ts';
import type { CommandContext } from '../context.ts';
import { withSession } from '../context.ts';
import { exitCodes, UsageError } from '../exit-codes.ts';
import { lastAppliedAnnotation, planApply, validateBundle } from '../files/apply-resources.ts';
import { loadResourceFiles } from '../files/load-files.ts';
import { diffText } from '../output/line-diff.ts';
import { masked } from '../output/mask.ts';
import { shownName } from '../output/names.ts';
import { TypesLookup } from '../types-lookup.ts';

/** `diff -f FILE…`: what apply would change; 6 when there is something. */
export async function diffCommand(context: CommandContext, options: { readonly filename: readonly string[] }): Promise<number> {
  if (options.filename.length === 0) throw new UsageError('name what to compare with -f FILE, a folder, or - for standard input');
  const { io, environment } = context;
  return withSession(context, async (session) => {
    const types = await TypesLookup.read(session.state);
    const files = await loadResourceFiles(options.filename, { io, environment, types, namespace: context.options.namespace });
    const planned = await planApply(session.state, await validateBundle(session, files));
    let differs = false;
    for (const { file, current, next } of planned) {
      if (next === undefined) continue;
      const sensitive = types.byType(file.resource.metadata.type)?.sensitivity === 'sensitive';
      const difference = diffText(current === undefined ? '' : declared(current, sensitive), declared(next, sensitive));
      // Apply would only note for itself what it had set.
      if (difference === '') continue;
      differs = true;
      io.write(`${shownName(next.metadata)} (${current === undefined ? 'new' : 'changed'})\n${difference}`);
    }
    return differs ? exitCodes.differences : exitCodes.ok;
  });
}

/** The half of a resource that people declare, as text. */
export function declared(resource: Resource, sensitive: boolean): string {
  return stringifyYaml(declaredForm(resource, sensitive));
}

/** The half of a resource that people declare. */
export function declaredForm({ metadata, spec }: Resource, sensitive: boolean): Record<string, unknown> {
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
    spec: sensitive ? masked(spec) : visibleSpec(spec),
  };
}
