import { visibleText } from '../../resource/index.ts';
import { stringifyYaml } from '../../wire/index.ts';
import type { CommandContext } from '../context.ts';
import { withSession } from '../context.ts';
import { exitCodes } from '../exit-codes.ts';
import type { Holder } from '../holders.ts';
import { holdersOf } from '../holders.ts';
import { companionOf, joinStatus } from '../joined.ts';
import { ageText } from '../output/age.ts';
import { fileForm } from '../output/format.ts';
import { Table } from '../output/table.ts';
import { targetOf } from '../target.ts';
import { recordedTable } from './events.ts';

/** `describe TYPE ID` */
export async function describeCommand(context: CommandContext, typeName: string, id: string): Promise<number> {
  return withSession(context, async (session) => {
    const { types, pointer } = await targetOf(context, session, typeName, id);
    const resource = await session.state.get(pointer);
    const joined = joinStatus(resource, await companionOf(session.state, types, resource), types);
    const { io, environment } = context;
    const { metadata, spec } = fileForm(joined) as { readonly metadata: Readonly<Record<string, unknown>>; readonly spec: unknown };
    io.write(stringifyYaml({ ...metadata, age: ageText(resource.metadata.created, environment.now()) }));
    const holders = await holdersOf(session, resource);
    if (holders.length > 0) io.write(`held:\n${indent(holderTable(holders, environment.now()))}`);
    io.write(`spec:\n${indent(stringifyYaml(spec))}`);
    if (joined.status !== undefined) {
      const { conditions, ...rest } = (
        typeof joined.status === 'object' && joined.status !== null ? joined.status : { value: joined.status }
      ) as Readonly<Record<string, unknown>>;
      io.write(`status:\n${indent(stringifyYaml(rest))}`);
      if (Array.isArray(conditions) && conditions.length > 0)
        io.write(`conditions:\n${indent(conditionTable(conditions, environment.now()))}`);
    }
    const recorded = await recordedTable(session, types, pointer, environment.now());
    if (recorded !== '') io.write(`events:\n${indent(recorded)}`);
    return exitCodes.ok;
  });
}

/** Who holds it, since when, and because of what. */
function holderTable(holders: readonly Holder[], nowMs: number): string {
  return new Table(['FINALIZER', 'HELD BY', 'SINCE', 'BECAUSE']).render(
    holders.map(({ finalizer, actor, since, because }) => [
      visibleText(finalizer),
      visibleText(actor),
      since === '' ? '' : `${since} (${ageText(since, nowMs)})`,
      visibleText(because),
    ]),
    { columns: 0 },
  );
}

function conditionTable(conditions: readonly Readonly<Record<string, unknown>>[], nowMs: number): string {
  const text = (value: unknown): string => (typeof value === 'string' ? value : '');
  return new Table(['TYPE', 'STATUS', 'SINCE', 'REASON', 'MESSAGE']).render(
    conditions.map((each) => [
      text(each.type),
      text(each.status),
      ageText(text(each.lastTransitionTime), nowMs),
      text(each.reason),
      visibleText(text(each.message)),
    ]),
    { columns: 0 },
  );
}

function indent(text: string): string {
  return text.replace(/^(?=.)/gm, '  ');
}
