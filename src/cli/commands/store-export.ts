import { dirname } from 'node:path';
import { isDatabaseFile, refuseOtherThanFile } from '../../backends/sqlite/index.ts';
import type { Resource } from '../../resource/index.ts';
import { resourceDefinitionDefinition, SteadystateError } from '../../resource/index.ts';
import type { CommandContext } from '../context.ts';
import { ExitError, exitCodes, UsageError } from '../exit-codes.ts';
import { FileSink } from '../file-sink.ts';
import type { LinesFormat } from '../files/resource-lines.ts';
import { resourceText } from '../files/resource-lines.ts';
import { masked } from '../output/mask.ts';
import type { StoreTarget } from '../store-target.ts';
import { adminOf } from '../store-target.ts';
import { long } from './store.ts';

/** `store export [FILE]`: every resource with all of its metadata, in the order of creation. */
export async function exportCommand(
  context: CommandContext,
  target: StoreTarget,
  file: string | undefined,
  { force = false }: { readonly force?: boolean },
): Promise<number> {
  const { io, environment } = context;
  const format = formatOf(context.options.output, file);
  const admin = await adminOf(target, context);
  if (file !== undefined) await checkTarget(context, target, file, force);
  const sink = file === undefined ? undefined : await FileSink.open(file);
  const sensitive = new Set<string>();
  const salt = environment.id();
  let count = 0;
  try {
    await long(context, 'exporting the store', async ({ signal, onProgress }) => {
      for await (const resource of admin.export({ signal, onProgress })) {
        signal.throwIfAborted();
        noteSensitive(resource, sensitive);
        count++;
        if (sink !== undefined) await sink.write(resourceText(resource, format));
        else {
          // On a terminal somebody may look over the shoulder; a file and a pipe get what can be read back.
          const hide = io.isTerminal && sensitive.has(resource.metadata.type);
          io.write(resourceText(hide ? { metadata: resource.metadata, spec: masked(resource.spec, salt) } : resource, format));
          await io.drained?.();
        }
        if (count % 1000 === 0) {
          onProgress({ step: 'written', done: count, total: 0 });
          await environment.breathe();
        }
      }
      await sink?.finish();
    });
  } catch (error) {
    await sink?.discard();
    throw error;
  }
  if (file !== undefined) io.write(`${file}: ${count} resources\n`);
  return exitCodes.ok;
}

function formatOf(output: string | undefined, file: string | undefined): LinesFormat {
  if (output === undefined) return file !== undefined && /\.(?:json|jsonl|ndjson)$/i.test(file) ? 'json' : 'yaml';
  if (output === 'yaml' || output === 'json') return output;
  throw new UsageError(`store export writes yaml, or json for JSON lines, found ${output}`);
}

function noteSensitive({ metadata, spec }: Resource, sensitive: Set<string>): void {
  if (metadata.type !== resourceDefinitionDefinition.type) return;
  const { resourceType, sensitivity } = spec as { readonly resourceType?: unknown; readonly sensitivity?: unknown };
  if (sensitivity === 'sensitive' && typeof resourceType === 'string') sensitive.add(resourceType);
}

async function checkTarget({ environment }: CommandContext, target: StoreTarget, file: string, force: boolean): Promise<void> {
  const { files } = environment;
  if ((await files.stat(dirname(file))) === undefined)
    throw new ExitError(exitCodes.notFound, `the folder ${dirname(file)} does not exist`);
  await refuseOtherThanFile(files, file);
  const there = await files.stat(file);
  if (target.kind === 'file' && there !== undefined && (await files.stat(target.file))?.identity === there.identity)
    throw new UsageError(`${file} is the store itself; name another file`);
  // Whether another program has it open is not known here: text never takes the place of a database.
  if (await isDatabaseFile(files, file))
    throw new SteadystateError(
      'Invalid',
      `${file} is a store or another database, or belongs to one, and is never replaced by an export; name another file`,
    );
  if (there !== undefined && !force)
    throw new SteadystateError('Conflict', `${file} exists already; name another file, or use --force to replace it`, {
      reason: 'alreadyExists',
    });
}
