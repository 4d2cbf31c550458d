import type { AnyResourceDefinition } from '../resource/index.ts';
import { invalid } from '../resource/index.ts';
import { isTime } from './answers.ts';
import type { WorkloadOptions } from './define-workload.ts';
import { walkDependencies } from './dependency-walk.ts';

/** Invalid unless the workload has a status type, children, dependencies and a collection that are not its own kind, and times that are some. */
export function validateWorkload<Spec, Input>(options: WorkloadOptions<Spec, Input>): void {
  const { definition, children, retiredChildren = [], dependencyKinds = [], collection, resyncMs, deadlineMs } = options;
  const issues: { path: string; message: string }[] = [];
  const own = (path: string, message: string): void => void issues.push({ path, message });
  if (definition.statusType === undefined)
    own('definition.status', `InvalidWorkload: ${definition.type} needs a status type, for example ${definition.displayType}Statuses.…`);
  if (children.some((child) => child.type === definition.type))
    own('children', `InvalidWorkload: ${definition.type} cannot be its own child`);
  for (const type of retiredChildren) {
    if (!/^[^.]+\../.test(type)) own('retiredChildren', `InvalidWorkload: ${type} is no type; expected one such as Things.example.dev`);
    if (type === definition.type || children.some((child) => child.type === type))
      own('retiredChildren', `InvalidWorkload: ${type} is ${type === definition.type ? 'the workload itself' : 'among the children too'}`);
  }
  if (dependencyKinds.some((kind) => kind.type === definition.type))
    own('dependencyKinds', `InvalidWorkload: ${definition.type} cannot depend on its own kind`);
  if (collection?.definition.type === definition.type)
    own('collection', `InvalidWorkload: ${definition.type} cannot be its own collection`);
  for (const [name, ms] of Object.entries({ resyncMs, deadlineMs }))
    if (ms !== undefined && !(isTime(ms) && ms > 0))
      own(name, `InvalidWorkload: expected a finite number of milliseconds above 0, found ${String(ms)}`);
  if (issues.length > 0) throw invalid(issues);
}

/** Invalid when kinds of workloads depend on each other in a circle: none of them could ever come up. */
export function checkDependencyCycles(
  definitions: readonly { readonly definition: AnyResourceDefinition; readonly dependencyKinds?: readonly AnyResourceDefinition[] }[],
): void {
  const kinds = new Map(
    definitions.map(({ definition, dependencyKinds = [] }) => [definition.type, dependencyKinds.map(({ type }) => type)]),
  );
  walkDependencies(
    kinds.keys(),
    (type) => kinds.get(type) ?? [],
    (circle) => {
      throw invalid([{ path: 'dependencyKinds', message: `workloads depend on each other in a circle: ${circle.join(' → ')}` }]);
    },
  );
}

export function invalidCondition(type: string, why: string): Error {
  return invalid([{ path: `condition ${type}`, message: `choose another type: ${why}` }]);
}
