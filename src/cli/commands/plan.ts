import type { AnyResourceDefinition, Resource } from '../../resource/index.ts';
import { describeDefinition, makeResource, visibleText } from '../../resource/index.ts';
import { wrapCore } from '../../state/index.ts';
import { openStore } from '../../stores/index.ts';
import { stringifyYaml } from '../../wire/index.ts';
import type { PlannedChild } from '../../workload/index.ts';
import { parentAnnotation, parentIdLabel, typeOfKind } from '../../workload/index.ts';
import type { CommandContext } from '../context.ts';
import { exitCodes, UsageError } from '../exit-codes.ts';
import { planApply, validateBundle } from '../files/apply-resources.ts';
import { loadResourceFiles } from '../files/load-files.ts';
import type { KnownWorkload, PlannedWorkload } from '../files/plan-workload.ts';
import { knownWorkloads, planWorkload } from '../files/plan-workload.ts';
import { localRegistry, validateLocally } from '../local-control.ts';
import type { ServeModule } from '../operator.ts';
import { definitionsOf } from '../operator.ts';
import { jsonText, parseOutput } from '../output/format.ts';
import { diffText } from '../output/line-diff.ts';
import { shownName } from '../output/names.ts';
import { connect, NoStoreError } from '../session.ts';
import { TypesLookup } from '../types-lookup.ts';
import { declared, declaredForm } from './diff.ts';
import { loadModule } from './serve.ts';

export interface PlanOptions {
  readonly filename: readonly string[];
  readonly module: readonly string[];
}

interface PlannedResource {
  readonly current: Resource | undefined;
  /** As it would be. */
  readonly resource: Resource;
  readonly action: 'create' | 'update' | 'keep';
  /** Absent: it is no workload whose children can be computed here. */
  readonly workload?: PlannedWorkload;
}

/** `plan -f FILE…`: the children and phases of what the files declare, compared with the store if there is one. */
export async function planCommand(context: CommandContext, options: PlanOptions): Promise<number> {
  if (options.filename.length === 0) throw new UsageError('name what to plan with -f FILE, a folder, or - for standard input');
  const format = parseOutput(context.options.output);
  if (format === 'wide' || format === 'name') throw new UsageError('plan prints text, yaml, json or jsonpath=TEMPLATE');
  const { io } = context;
  const modules: ServeModule[] = [];
  for (const name of options.module) modules.push(await loadModule(name, io.directory));
  const definitions = new Map([...localRegistry(modules.flatMap(definitionsOf))].map((definition) => [definition.type, definition]));
  const { types, planned } = await planFiles(context, options.filename, modules, [...definitions.values()]);
  if (format === 'table') for (const each of planned) io.write(textOf(each, types));
  else {
    const value = { items: planned.map((each) => formOf(each, types)) };
    io.write(format === 'json' ? `${jsonText(value)}\n` : format === 'yaml' ? stringifyYaml(value) : format.jsonPath(value));
  }
  return planned.every(isKept) ? exitCodes.ok : exitCodes.differences;
}

async function planFiles(
  context: CommandContext,
  filenames: readonly string[],
  modules: readonly ServeModule[],
  definitions: readonly AnyResourceDefinition[],
): Promise<{ readonly types: TypesLookup; readonly planned: readonly PlannedResource[] }> {
  const { io, environment } = context;
  await using store = await storeOf(context);
  const stored = await TypesLookup.read(store.state, environment);
  const own = definitions.map((definition) => describeDefinition(definition).spec);
  // What either calls sensitive is.
  const added = own.filter(({ resourceType, sensitivity }) => sensitivity === 'sensitive' || stored.byType(resourceType) === undefined);
  const kept = stored.all.filter(({ resourceType }) => added.every((each) => each.resourceType !== resourceType));
  const types = new TypesLookup([...kept, ...added], environment);
  const files = await loadResourceFiles(filenames, { io, environment, types, namespace: context.options.namespace });
  const registry = localRegistry(modules.flatMap(definitionsOf));
  const valid = await validateBundle({ validate: (resources) => validateLocally(resources, registry) }, files);
  const workloads = knownWorkloads(environment, io.directory, modules);
  const planned: PlannedResource[] = [];
  for (const { current, next } of await planApply(store.state, valid)) {
    const resource = (next ?? current) as Resource;
    const known: KnownWorkload | undefined = workloads.get(resource.metadata.type);
    const workload = known && (await planWorkload(known, resource, store.state, environment, io.signal));
    const action = current === undefined ? 'create' : next === undefined ? 'keep' : 'update';
    planned.push({ current, resource, action, ...(workload && { workload }) });
  }
  return { types, planned };
}

/** The store that is named or here; without one, an empty one. */
async function storeOf(context: CommandContext) {
  const { io, environment, options } = context;
  try {
    return await connect({ store: options.store, io, environment });
  } catch (error) {
    if (!(error instanceof NoStoreError)) throw error;
    const empty = await openStore('memory:', { environment, directory: io.directory });
    return { state: wrapCore(empty.state, { environment }), [Symbol.asyncDispose]: () => empty[Symbol.asyncDispose]() };
  }
}

function isKept({ action, workload }: PlannedResource): boolean {
  return (
    action === 'keep' &&
    (workload === undefined || (workload.prune.length === 0 && workload.children.every((child) => child.action === 'keep')))
  );
}

const signs = { create: '+', update: '~', adopt: '~', keep: ' ', wait: '!', refuse: '!' } as const;
const words = { create: 'would be created', update: 'would be changed', keep: 'stays as it is' } as const;

function textOf({ current, resource, action, workload }: PlannedResource, types: TypesLookup): string {
  const lines = [`${shownName(resource.metadata)} ${words[action]}`];
  if (action === 'update' && current !== undefined) lines.push(...indented(diffText(declared(current, types), declared(resource, types))));
  if (workload === undefined) return `${lines.join('\n')}\n`;
  lines.push(`  phases: ${workload.phases.join(', ')}`);
  let kept = 0;
  for (const planned of workload.children) {
    if (planned.action === 'keep') kept++;
    else {
      lines.push(
        `  ${signs[planned.action]} ${childText(planned.child.ref)}${planned.problem === undefined ? '' : `: ${visibleText(planned.problem)}`}`,
      );
      if (planned.action === 'update') lines.push(...indented(childDiff(planned, types)));
    }
  }
  for (const entry of workload.prune) lines.push(`  - ${childText(entry)}`);
  if (kept > 0) lines.push(`  ${kept} of ${workload.children.length} children stay as they are`);
  return `${lines.join('\n')}\n`;
}

function indented(text: string): readonly string[] {
  return text
    .trimEnd()
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => `      ${line}`);
}

function childText({ kind, name }: { readonly kind: string; readonly name: string }): string {
  return visibleText(`${kind.toLowerCase()}/${name}`);
}

function childDiff(planned: PlannedChild, types: TypesLookup): string {
  const [before, after] = [liveOf(planned), desiredOf(planned)];
  if (before === undefined) return '';
  return diffText(declared(before, types), declared(after, types));
}

function desiredOf({ child }: PlannedChild): Resource {
  return asResource(child.ref, child.labels, child.annotations, child.body);
}

function liveOf({ live }: PlannedChild): Resource | undefined {
  return live && asResource(live.ref, live.labels, live.annotations, live.body);
}

/** A child as a resource, without the marks that every child bears. */
function asResource(
  ref: PlannedChild['child']['ref'],
  labels: Readonly<Record<string, string>>,
  annotations: Readonly<Record<string, string>>,
  spec: unknown,
): Resource {
  const { [parentIdLabel]: _id, ...ownLabels } = labels;
  const { [parentAnnotation]: _parent, ...ownAnnotations } = annotations;
  const metadata = { namespace: ref.namespace, type: typeOfKind(ref), id: ref.name, labels: ownLabels, annotations: ownAnnotations };
  return makeResource({ metadata, spec });
}

function formOf({ resource, action, workload }: PlannedResource, types: TypesLookup): unknown {
  const form = (each: Resource): unknown => declaredForm(each, types);
  return {
    action,
    resource: form(resource),
    ...(workload && {
      phases: workload.phases,
      children: workload.children.map((planned) => ({
        action: planned.action,
        ...(planned.problem !== undefined && { problem: planned.problem }),
        ...(planned.child.dependsOn !== undefined && planned.child.dependsOn.length > 0 && { dependsOn: planned.child.dependsOn }),
        resource: form(desiredOf(planned)),
      })),
      prune: workload.prune.map((entry) => ({ namespace: entry.namespace, type: typeOfKind(entry), id: entry.name })),
    }),
  };
}
