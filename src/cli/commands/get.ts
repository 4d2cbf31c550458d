import type { Resource, ResourceQuery } from '../../resource/index.ts';
import { compareIds, isNotFoundError, parseLabelQuery, visibleText } from '../../resource/index.ts';
import { errorText } from '../advice.ts';
import type { CommandContext } from '../context.ts';
import { asUsage, withSession } from '../context.ts';
import { exitCodes, UsageError } from '../exit-codes.ts';
import { followKind, followNamespaces, allNamespaces as namespacesWith } from '../follow-kind.ts';
import type { JoinedResource } from '../joined.ts';
import { companionOf, companionsOf, joinStatus, statusTypeOf } from '../joined.ts';
import { jsonText, parseOutput, pathForm, structured } from '../output/format.ts';
import { compilePath, valueText } from '../output/jsonpath.ts';
import { nameLine } from '../output/names.ts';
import { Table } from '../output/table.ts';
import type { Session } from '../session.ts';
import { typedPointer } from '../target.ts';
import type { KnownType } from '../types-lookup.ts';
import { TypesLookup } from '../types-lookup.ts';
import { parseCustomColumns, rowShape } from './rows.ts';

export interface GetOptions {
  readonly selector?: string;
  readonly watch?: boolean;
  readonly sortBy?: string;
  readonly headers?: boolean;
  readonly showLabels?: boolean;
  readonly ignoreNotFound?: boolean;
}

/** `get TYPE [ID…]` */
export async function getCommand(context: CommandContext, typeName: string, ids: readonly string[], options: GetOptions): Promise<number> {
  const custom = parseCustomColumns(context.options.output);
  const format = custom === undefined ? parseOutput(context.options.output) : 'table';
  const query: ResourceQuery = queryOf(options.selector);
  const sort = sorter(options.sortBy);
  if (options.watch === true && format !== 'table' && format !== 'wide')
    throw new UsageError('-w keeps a table; every change as JSON is: steadystate watch TYPE -o json');
  if (ids.length > 0 && options.selector !== undefined) throw new UsageError('ids and -l cannot be combined');
  if (ids.length > 0 && context.options.allNamespaces === true)
    throw new UsageError('ids and -A cannot be combined: an id is looked up in one namespace');
  return withSession(context, async (session) => {
    const types = await TypesLookup.read(session.state, context.environment);
    const type = types.find(typeName);
    const namespaces = await namespacesOf(context, session, type);
    const found = await read(session, types, type, namespaces, ids, query);
    const resources = sort(found.resources);
    const { io } = context;
    const ignored = options.ignoreNotFound === true ? found.missing.length : 0;
    // Nothing of what was asked for is no list either.
    if (ignored > 0 && resources.length === 0 && options.watch !== true) return exitCodes.ok;
    if (format === 'yaml' || format === 'json') io.write(structured(format, resources, ids.length === 1));
    else if (format === 'name') io.write(resources.map(({ metadata }) => nameLine(metadata, types)).join(''));
    else if (typeof format === 'object')
      io.write(
        format.jsonPath(
          ids.length === 1 && resources.length === 1 ? pathForm(resources[0] as JoinedResource) : { items: resources.map(pathForm) },
        ),
      );
    else {
      const shape =
        custom ??
        rowShape(type.definition, {
          wide: format === 'wide',
          labels: options.showLabels === true,
          namespaces: context.options.allNamespaces === true,
          nowMs: () => context.environment.now(),
        });
      const table = new Table(options.headers === false ? [] : shape.headings);
      const columns = io.isTerminal ? io.columns() : 0;
      if (resources.length > 0 || options.watch === true)
        io.write(table.render(resources.map(shape.cells), { columns, headings: options.headers !== false }));
      else if (found.missing.length === 0)
        io.writeError(`no ${visibleText(type.definition?.displayType ?? type.type)} in ${namespaces.join(', ') || 'any namespace'}\n`);
      if (options.watch === true)
        await watchRows(context, session, types, type, namespaces, ids, query, resources, (row) =>
          io.write(table.render(['spec' in row ? shape.cells(row) : shape.goneCells(row.metadata)], { columns, headings: false })),
        );
    }
    if (ignored > 0) return exitCodes.ok;
    for (const error of found.missing) io.writeError(errorText(error));
    return found.missing.length > 0 ? exitCodes.notFound : exitCodes.ok;
  });
}

/** The namespaces that a command looks into. */
export async function namespacesOf(
  context: CommandContext,
  session: Session,
  type: Pick<KnownType, 'type' | 'defaultNamespace'>,
): Promise<readonly string[]> {
  const { namespace, allNamespaces } = context.options;
  return allNamespaces === true ? namespacesWith(session, type.type) : [namespace ?? type.defaultNamespace];
}

async function read(
  session: Session,
  types: TypesLookup,
  type: KnownType,
  namespaces: readonly string[],
  ids: readonly string[],
  query: ResourceQuery,
): Promise<{ readonly resources: readonly JoinedResource[]; readonly missing: readonly unknown[] }> {
  const { state } = session;
  if (ids.length === 0) {
    const resources: JoinedResource[] = [];
    for (const namespace of namespaces) {
      const kind = { namespace, type: type.type };
      const [{ items }, companions] = await Promise.all([state.list(kind, query), companionsOf(state, types, kind)]);
      resources.push(...items.map((item) => joinStatus(item, companions.get(item.metadata.id), types)));
    }
    return { resources, missing: [] };
  }
  const resources: JoinedResource[] = [];
  const missing: unknown[] = [];
  for (const id of ids) {
    try {
      const resource = await state.get(typedPointer(types, type.type, id, namespaces[0]));
      resources.push(joinStatus(resource, await companionOf(state, types, resource), types));
    } catch (error) {
      if (!isNotFoundError(error)) throw error;
      missing.push(error);
    }
  }
  return { resources, missing };
}

function queryOf(selector: string | undefined): ResourceQuery {
  return selector === undefined ? {} : { labelQueries: [asUsage('-l', () => parseLabelQuery(selector))] };
}

/** Puts resources in the order of the value at a path: numbers by their size, then text, then what has no value. */
function sorter(by: string | undefined): (resources: readonly JoinedResource[]) => readonly JoinedResource[] {
  if (by === undefined) return (resources) => resources;
  const path = compilePath(by);
  const key = (resource: JoinedResource): unknown => path(pathForm(resource))[0];
  const rank = (value: unknown): number => (isNumber(value) ? 0 : value === undefined || value === null ? 2 : 1);
  return (resources) =>
    [...resources].sort((left, right) => {
      const [a, b] = [key(left), key(right)];
      if (isNumber(a) && isNumber(b)) return a < b ? -1 : a > b ? 1 : 0;
      return rank(a) - rank(b) || compareIds(valueText(a), valueText(b));
    });
}

function isNumber(value: unknown): value is number | bigint {
  return typeof value === 'number' || typeof value === 'bigint';
}

/** Prints a row for each change, its companion's too, and for each end, until the command is interrupted. */
async function watchRows(
  context: CommandContext,
  session: Session,
  types: TypesLookup,
  type: KnownType,
  namespaces: readonly string[],
  ids: readonly string[],
  query: ResourceQuery,
  shown: readonly JoinedResource[],
  print: (row: JoinedResource | Pick<JoinedResource, 'metadata'>) => void,
): Promise<void> {
  const last = new Map<string, string>(shown.map((resource) => [keyOf(resource.metadata), jsonText(pathForm(resource))]));
  const wanted = ({ metadata }: Pick<Resource, 'metadata'>): boolean => ids.length === 0 || ids.includes(metadata.id);
  const tell = (resource: Resource, companion: Resource | undefined): void => {
    const joined = joinStatus(resource, companion, types);
    const text = jsonText(pathForm(joined));
    if (last.get(keyOf(resource.metadata)) === text) return;
    last.set(keyOf(resource.metadata), text);
    print(joined);
  };
  const statusType = statusTypeOf(types, type.type);
  await followNamespaces(context, session, type.type, namespaces, async (namespace) => {
    const resources = new Map<string, Resource>();
    const companions = new Map<string, Resource>();
    // A row needs both halves: nothing is told before both are known.
    let unknown = statusType === undefined ? 1 : 2;
    const tellOne = (id: string): void => {
      const resource = resources.get(id);
      if (unknown === 0 && resource !== undefined && wanted(resource)) tell(resource, companions.get(id));
    };
    const one = (kindType: string, into: Map<string, Resource>, own: boolean): Promise<void> =>
      followKind(context, session, { namespace, type: kindType }, own ? query : {}, (event) => {
        if (event.type === 'bootstrapped' && --unknown === 0) for (const id of resources.keys()) tellOne(id);
        if (event.type === 'destroyed') {
          into.delete(event.resource.metadata.id);
          // What was never shown is not missed.
          if (own && last.delete(keyOf(event.resource.metadata))) print({ metadata: event.resource.metadata });
        }
        if (event.type !== 'created' && event.type !== 'updated') return;
        into.set(event.resource.metadata.id, event.resource);
        tellOne(event.resource.metadata.id);
      });
    await Promise.all([one(type.type, resources, true), ...(statusType === undefined ? [] : [one(statusType, companions, false)])]);
  });
}

function keyOf({ namespace, type, id }: Resource['metadata']): string {
  return JSON.stringify([namespace, type, id]);
}
