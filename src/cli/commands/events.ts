import type { Pointer, Resource } from '../../resource/index.ts';
import { compareIds, isForbiddenError } from '../../resource/index.ts';
import type { StateEvent } from '../../state/index.ts';
import { stringifyYaml } from '../../wire/index.ts';
import type { EventSpec } from '../../workload/index.ts';
import { eventDefinition } from '../../workload/index.ts';
import type { CommandContext } from '../context.ts';
import { withSession } from '../context.ts';
import { exitCodes, UsageError } from '../exit-codes.ts';
import { followKind, followNamespaces } from '../follow-kind.ts';
import { joinStatus } from '../joined.ts';
import { ageText } from '../output/age.ts';
import type { OutputFormat } from '../output/format.ts';
import { fileForm, jsonText, parseOutput, structured } from '../output/format.ts';
import { nameLine, shortName } from '../output/names.ts';
import { Table } from '../output/table.ts';
import type { Session } from '../session.ts';
import { typedPointer } from '../target.ts';
import { TypesLookup } from '../types-lookup.ts';
import { namespacesOf } from './get.ts';

export interface EventsOptions {
  /** `TYPE/ID` of what the events are about. */
  readonly for?: string;
  readonly types?: string;
  readonly watch?: boolean;
  readonly headers?: boolean;
}

/** How many events a description shows. */
const mostRecorded = 20;

/** `events [--for TYPE/ID] [-w]`: what was recorded, the last seen at the end. */
export async function eventsCommand(context: CommandContext, options: EventsOptions): Promise<number> {
  const format = parseOutput(context.options.output);
  const severities = severitiesOf(options.types);
  const about = options.for === undefined ? undefined : splitName(options.for);
  if (about !== undefined && context.options.allNamespaces === true)
    throw new UsageError('--for and -A cannot be combined: an id is looked up in one namespace');
  return withSession(context, async (session) => {
    const types = await TypesLookup.read(session.state, context.environment);
    const wanted = about && typedPointer(types, about.type, about.id, context.options.namespace);
    const type = { type: eventDefinition.type, defaultNamespace: wanted?.namespace ?? eventDefinition.defaultNamespace };
    const fits = (event: Resource): boolean =>
      (wanted === undefined || isAbout(event, wanted)) && (severities === undefined || severities.includes(textOf(specOf(event).type)));
    const namespaces = await namespacesOf(context, session, type);
    const found: Resource[] = [];
    for (const namespace of namespaces)
      found.push(...(await session.state.list({ namespace, type: type.type })).items.filter((event) => fits(event)));
    const events = found.sort(byTime);
    const { io } = context;
    if (events.length === 0 && options.watch !== true && format !== 'json' && format !== 'yaml') {
      io.writeError(
        `no events ${wanted === undefined ? `in ${namespaces.join(', ') || 'any namespace'}` : `about ${options.for} in ${wanted.namespace}`}\n`,
      );
      return exitCodes.ok;
    }
    const print = printer(context, types, format, options);
    print(events);
    if (options.watch === true) await watchEvents(context, session, type.type, namespaces, events, fits, (event) => print([event], true));
    return exitCodes.ok;
  });
}

/** What was recorded of one resource, in a table, the last seen at the end; empty: nothing was. */
export async function recordedTable(session: Session, types: TypesLookup, pointer: Pointer, nowMs: number): Promise<string> {
  let items: readonly Resource[];
  try {
    ({ items } = await session.state.list({ namespace: pointer.namespace, type: eventDefinition.type }));
  } catch (error) {
    // Whoever may see a resource need not see what was recorded.
    if (isForbiddenError(error)) return '';
    throw error;
  }
  const events = items
    .filter((event) => isAbout(event, pointer))
    .sort(byTime)
    .slice(-mostRecorded);
  if (events.length === 0) return '';
  const rows = events.map((event) => {
    const spec = specOf(joinStatus(event, undefined, types));
    return [ageText(textOf(spec.lastSeen), nowMs), textOf(spec.type), textOf(spec.reason), textOf(spec.count), textOf(spec.note)];
  });
  return new Table(['LAST SEEN', 'TYPE', 'REASON', 'COUNT', 'MESSAGE']).render(rows, { columns: 0 });
}

function severitiesOf(text: string | undefined): readonly string[] | undefined {
  const names = text?.split(',').map((name) => name.trim());
  const unknown = names?.find((name) => name !== 'Normal' && name !== 'Warning');
  if (unknown !== undefined) throw new UsageError(`--types: expected Normal, Warning or both, found ${unknown}`);
  return names;
}

/** An id may hold slashes, a type may not. */
function splitName(text: string): { readonly type: string; readonly id: string } {
  const slash = text.indexOf('/');
  if (slash < 1 || slash === text.length - 1) throw new UsageError(`--for: expected TYPE/ID such as stack/shop, found ${text}`);
  return { type: text.slice(0, slash), id: text.slice(slash + 1) };
}

/** Other programs record events too: nothing is taken for granted. */
function specOf({ spec }: Pick<Resource, 'spec'>): Partial<EventSpec> {
  return typeof spec === 'object' && spec !== null ? (spec as Partial<EventSpec>) : {};
}

function textOf(value: unknown): string {
  return typeof value === 'string' || typeof value === 'number' || typeof value === 'bigint' ? String(value) : '';
}

function isAbout(event: Resource, wanted: Pointer): boolean {
  const { regarding, related } = specOf(event);
  return [regarding, related].some(
    (place) => place?.type === wanted.type && place.namespace === wanted.namespace && place.id === wanted.id,
  );
}

/** By when it was last seen; what was told at one moment, in the order of its writes. */
function byTime(left: Resource, right: Resource): number {
  const [a, b] = [Date.parse(textOf(specOf(left).lastSeen)) || 0, Date.parse(textOf(specOf(right).lastSeen)) || 0];
  const [x, y] = [Number(left.metadata.version), Number(right.metadata.version)];
  return a - b || x - y || compareIds(left.metadata.id, right.metadata.id);
}

function printer(
  context: CommandContext,
  types: TypesLookup,
  format: OutputFormat,
  options: EventsOptions,
): (events: readonly Resource[], one?: boolean) => void {
  const { io, environment } = context;
  const watching = options.watch === true;
  const shown = (event: Resource) => joinStatus(event, undefined, types);
  const each = (events: readonly Resource[], line: (event: Resource) => string): void => io.write(events.map(line).join(''));
  if (format === 'name') return (events) => each(events, ({ metadata }) => nameLine(metadata, types));
  if (format === 'json' && watching) return (events) => each(events, (event) => `${jsonText(fileForm(shown(event)), 0)}\n`);
  if (format === 'yaml' && watching) return (events) => each(events, (event) => `---\n${stringifyYaml(fileForm(shown(event)))}`);
  if (format === 'json' || format === 'yaml') return (events) => io.write(structured(format, events.map(shown), false));
  if (typeof format === 'object') {
    return (events) =>
      watching
        ? each(events, (event) => `${format.jsonPath(fileForm(shown(event)))}\n`)
        : io.write(format.jsonPath({ items: events.map((event) => fileForm(shown(event))) }));
  }
  const shape = { wide: format === 'wide', namespaces: context.options.allNamespaces === true };
  const headings = options.headers === false ? [] : headingsOf(shape);
  const table = new Table(headings);
  const columns = io.isTerminal ? io.columns() : 0;
  return (events, one) =>
    io.write(
      table.render(
        events.map((event) => cellsOf(shown(event), shape, environment.now())),
        { columns, headings: one !== true && options.headers !== false },
      ),
    );
}

interface Shape {
  readonly wide: boolean;
  readonly namespaces: boolean;
}

function headingsOf({ wide, namespaces }: Shape): readonly string[] {
  return [
    ...(namespaces ? ['NAMESPACE'] : []),
    ...['LAST SEEN', 'TYPE', 'REASON', 'OBJECT'],
    ...(wide ? ['CHILD', 'SOURCE', 'FIRST SEEN'] : []),
    ...['COUNT', 'MESSAGE'],
  ];
}

function cellsOf(event: Pick<Resource, 'metadata' | 'spec'>, { wide, namespaces }: Shape, nowMs: number): readonly string[] {
  const { metadata } = event;
  const spec = specOf(event);
  const object = (place: EventSpec['regarding'] | undefined): string =>
    place === undefined ? '' : shortName({ type: textOf(place.type), id: textOf(place.id) });
  return [
    ...(namespaces ? [metadata.namespace] : []),
    ...[ageText(textOf(spec.lastSeen), nowMs), textOf(spec.type), textOf(spec.reason), object(spec.regarding)],
    ...(wide ? [object(spec.related), metadata.owner === '' ? '<none>' : metadata.owner, ageText(textOf(spec.firstSeen), nowMs)] : []),
    ...[textOf(spec.count), textOf(spec.note)],
  ];
}

/** Tells each event that is recorded, or seen again, until the command is interrupted. */
async function watchEvents(
  context: CommandContext,
  session: Session,
  type: string,
  namespaces: readonly string[],
  shown: readonly Resource[],
  fits: (event: Resource) => boolean,
  print: (event: Resource) => void,
): Promise<void> {
  const versions = new Map(shown.map(({ metadata }) => [JSON.stringify([metadata.namespace, metadata.id]), metadata.version]));
  const tell = (change: StateEvent): void => {
    if (change.type !== 'created' && change.type !== 'updated') return;
    const { resource } = change;
    const key = JSON.stringify([resource.metadata.namespace, resource.metadata.id]);
    if (!fits(resource) || versions.get(key) === resource.metadata.version) return;
    versions.set(key, resource.metadata.version);
    print(resource);
  };
  await followNamespaces(context, session, type, namespaces, (namespace) => followKind(context, session, { namespace, type }, {}, tell));
}
