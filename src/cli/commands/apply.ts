import type { CommandContext } from '../context.ts';
import { timeoutMs, withSession } from '../context.ts';
import { exitCodes, UsageError } from '../exit-codes.ts';
import type { ApplyVerb } from '../files/apply-resources.ts';
import { applyAll, planApply, validateBundle } from '../files/apply-resources.ts';
import { loadResourceFiles } from '../files/load-files.ts';
import { shownName } from '../output/names.ts';
import { TypesLookup } from '../types-lookup.ts';
import { waitForReady } from './wait-ready.ts';

export interface ApplyOptions {
  readonly filename: readonly string[];
  readonly wait?: boolean;
  /** As kubectl has it: anything but `none` writes nothing. */
  readonly dryRun?: string;
}

/** `apply -f FILE…` */
export async function applyCommand(context: CommandContext, options: ApplyOptions): Promise<number> {
  if (options.filename.length === 0) throw new UsageError('name what to apply with -f FILE, a folder, or - for standard input');
  const { io, environment } = context;
  const isDry = options.dryRun !== undefined && options.dryRun !== 'none';
  return withSession(
    context,
    async (session) => {
      const types = await TypesLookup.read(session.state, context.environment);
      const files = await loadResourceFiles(options.filename, { io, environment, types, namespace: context.options.namespace });
      if (isDry) {
        for (const { current, next, file } of await planApply(session.state, await validateBundle(session, files))) {
          const verb: ApplyVerb = next === undefined ? 'unchanged' : current === undefined ? 'created' : 'configured';
          io.write(`${shownName(file.resource.metadata)} ${verb} (dry run)\n`);
        }
        return exitCodes.ok;
      }
      const { exitCode, applied } = await applyAll(
        session,
        files,
        ({ resource, verb }) => io.write(`${shownName(resource.metadata)} ${verb}\n`),
        (text) => io.writeError(`${text}\n`),
      );
      if (options.wait !== true || exitCode !== exitCodes.ok) return exitCode;
      return waitForReady(
        context,
        session,
        types,
        applied.map(({ resource }) => resource.metadata),
        timeoutMs(context, 120_000),
      );
    },
    { create: !isDry },
  );
}
