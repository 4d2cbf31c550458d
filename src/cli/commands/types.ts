import { stringifyYaml } from '../../wire/index.ts';
import type { CommandContext } from '../context.ts';
import { withSession } from '../context.ts';
import { exitCodes } from '../exit-codes.ts';
import { jsonText, parseOutput } from '../output/format.ts';
import { Table } from '../output/table.ts';
import { TypesLookup } from '../types-lookup.ts';

/** `types` */
export async function typesCommand(context: CommandContext): Promise<number> {
  const format = parseOutput(context.options.output);
  return withSession(context, async (session) => {
    const { all } = await TypesLookup.read(session.state, context.environment);
    const { io } = context;
    if (format === 'json') io.write(`${jsonText({ items: all })}\n`);
    else if (format === 'yaml') io.write(stringifyYaml({ items: all }));
    else if (format === 'name') io.write(all.map((each) => `${each.resourceType}\n`).join(''));
    else if (typeof format === 'object') io.write(format.jsonPath({ items: all }));
    else {
      const rows = all.map((each) => [
        each.displayType,
        each.aliases.join(','),
        each.resourceType,
        each.defaultNamespace,
        each.sensitivity === 'sensitive' ? 'sensitive' : '',
      ]);
      io.write(
        new Table(['NAME', 'ALIASES', 'TYPE', 'NAMESPACE', 'SENSITIVITY']).render(rows, { columns: io.isTerminal ? io.columns() : 0 }),
      );
    }
    return exitCodes.ok;
  });
}
