import type { Pointer, Resource } from '../resource/index.ts';
import { visibleText } from '../resource/index.ts';
import type { Condition, InventoryEntry } from '../workload/index.ts';
import { ageText, durationText } from './output/age.ts';
import { shownName } from './output/names.ts';
import { Table } from './output/table.ts';
import { cutText } from './output/text-width.ts';

/** What a status companion says, as far as it is shown. */
export interface ShownStatus {
  readonly conditions?: readonly Condition[];
  readonly children?: readonly InventoryEntry[];
}

/** One resource that is waited for. */
export interface ShownSubject {
  readonly pointer: Pointer;
  readonly resource: Resource | undefined;
  readonly status: ShownStatus | undefined;
  readonly ready: boolean;
  /** Why not. */
  readonly reason: string;
}

/** Conditions that sum up, and are no phase. */
const summaries: ReadonlySet<string> = new Set(['Ready', 'Reconciling', 'Stalled', 'Paused']);

/** The phases of a status, in their order. */
export function phasesOf(status: ShownStatus | undefined): readonly Condition[] {
  return (status?.conditions ?? []).filter(({ type }) => !summaries.has(type));
}

export function reasonText({ reason, message }: { readonly reason: string; readonly message: string }): string {
  return message === '' ? reason : `${reason}: ${message}`;
}

/** One frame of the table that is drawn in place: a line for each resource with its phases, below them the children. */
export function frame(
  subjects: readonly ShownSubject[],
  at: { readonly nowMs: number; readonly elapsedMs: number; readonly columns: number; readonly rows: number },
): string {
  const mixed = subjects.some(({ pointer }) => pointer.type !== subjects[0]?.pointer.type);
  const lines = subjects.map((subject) => {
    const name = mixed ? shownName(subject.pointer) : visibleText(subject.pointer.id);
    const strip = phasesOf(subject.status).map(
      ({ type, status }) => `${status === 'True' ? '✓' : status === 'False' ? '▸' : '·'} ${visibleText(type)}`,
    );
    const going = subject.resource?.metadata.phase === 'tearingDown' ? 'being torn down' : '';
    // What has no phases says itself what it waits for.
    const why = strip.length === 0 && !subject.ready ? visibleText(subject.reason) : '';
    const parts = [name, strip.join('  '), durationText(at.elapsedMs), going, why].filter((part) => part !== '');
    return cutText(`${subject.ready ? '●' : '○'} ${parts.join('   ')}`, at.columns);
  });
  const children = subjects.flatMap(({ status }) => (status?.children ?? []).map((entry) => childRow(entry, at.nowMs)));
  const { shown, left } = fitting(children, at.rows - lines.length - 4);
  const table = children.length === 0 ? '' : new Table(['  KIND', 'NAME', 'STATE', 'FOR', 'REASON']).render(shown, { columns: at.columns });
  return `${lines.map((line) => `${line}\n`).join('')}${table}${left === 0 ? '' : `  … and ${left} more\n`}`;
}

function childRow(entry: InventoryEntry, nowMs: number): readonly string[] {
  const state = entry.ready ? 'ready' : 'waiting';
  return [`  ${entry.kind}`, entry.name, state, ageText(entry.lastTransitionTime, nowMs), entry.ready ? '' : reasonText(entry)];
}

/** What fits on the screen: what is not ready comes first, so that it is never the part left out. */
function fitting(
  rows: readonly (readonly string[])[],
  room: number,
): { readonly shown: readonly (readonly string[])[]; readonly left: number } {
  if (rows.length <= room || room < 1) return { shown: rows, left: 0 };
  const waiting = rows.filter((row) => row[2] !== 'ready');
  const shown = new Set([...waiting, ...rows.filter((row) => row[2] === 'ready')].slice(0, room));
  return { shown: rows.filter((row) => shown.has(row)), left: rows.length - shown.size };
}
