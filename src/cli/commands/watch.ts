import { Bytes, visibleText } from '../../resource/index.ts';
import type { StateEvent, Watch } from '../../state/index.ts';
import type { CommandContext } from '../context.ts';
import { withSession } from '../context.ts';
import { establish } from '../establish.ts';
import { exitCodes, UsageError, watchEnded } from '../exit-codes.ts';
import { joinStatus } from '../joined.ts';
import { fileForm, jsonText, parseOutput } from '../output/format.ts';
import { typedPointer } from '../target.ts';
import { TypesLookup } from '../types-lookup.ts';

/** `watch TYPE [ID] [--from BOOKMARK]` */
export async function watchCommand(
  context: CommandContext,
  typeName: string,
  id: string | undefined,
  options: { readonly from?: string },
): Promise<number> {
  const format = parseOutput(context.options.output);
  if (format !== 'table' && format !== 'json') throw new UsageError('watch prints lines, or JSON lines with -o json');
  const from = options.from === undefined ? {} : { startFromBookmark: readBookmark(options.from) };
  const { io, environment } = context;
  return withSession(context, async (session) => {
    const types = await TypesLookup.read(session.state, context.environment);
    const type = types.find(typeName);
    const kind = { namespace: context.options.namespace ?? type.defaultNamespace, type: type.type };
    const pointer = id === undefined ? undefined : typedPointer(types, typeName, id, context.options.namespace);
    const { signal } = io;
    const watch = await establish(context, (): Promise<Watch> => {
      if (pointer !== undefined) return session.state.watch(pointer, { ...from, signal });
      if (options.from !== undefined) return session.state.watchKind(kind, { ...from, signal });
      return session.state.follow(kind, { bootstrapContents: true, signal });
    });
    await watch.forEach((event) => {
      if (event.type === 'errored') throw event.error;
      const line = format === 'json' ? jsonLine(event, types) : textLine(event, environment.timestamp());
      if (line !== undefined) io.write(`${line}\n`);
    });
    if (!signal.aborted) throw watchEnded();
    return exitCodes.ok;
  });
}

function readBookmark(text: string): Bytes {
  if (!/^[A-Za-z0-9+/]+={0,2}$/.test(text)) throw new UsageError('--from: expected a bookmark as an earlier watch -o json printed it');
  return Bytes.from(Buffer.from(text, 'base64'));
}

function jsonLine(event: StateEvent, types: TypesLookup): string {
  const { bookmark, revision, resync } = event;
  const resource =
    'resource' in event && event.resource.spec !== undefined ? fileForm(joinStatus(event.resource as never, undefined, types)) : undefined;
  return jsonText(
    {
      type: event.type,
      ...(resource !== undefined
        ? { resource }
        : 'resource' in event && {
            resource: {
              metadata: {
                namespace: event.resource.metadata.namespace,
                type: event.resource.metadata.type,
                id: event.resource.metadata.id,
              },
            },
          }),
      ...(revision !== undefined && { revision }),
      ...(bookmark && { bookmark: bookmark.toBase64() }),
      ...(resync === true && { resync }),
    },
    0,
  );
}

function textLine(event: StateEvent, time: string): string | undefined {
  if (event.type === 'noop' || event.type === 'kindErrored' || event.type === 'errored') return undefined;
  if (event.type === 'bootstrapped') return `${time} bootstrapped`;
  const { metadata } = event.resource;
  return `${time} ${event.type} ${visibleText(`${metadata.type}/${metadata.namespace}/${metadata.id}`)} version ${metadata.version} ${metadata.phase}`;
}
