import type { StoreAdmin, StoreTaskOptions } from '../state/index.ts';
import { unsupported } from '../state/index.ts';
import type { StoreTaskResponse } from '../wire/index.ts';
import { controlService } from '../wire/index.ts';
import type { HandlerContext } from './context.ts';
import { endOf, streaming } from './context.ts';
import { itemsFrame } from './frame-cache.ts';
import { frame } from './grpc/framing.ts';
import type { ServerMethod } from './grpc/methods.ts';
import type { ServerCall } from './grpc/server-call.ts';

/** How often a client is told how far a work is, milliseconds. */
const tellEveryMs = 100;
/** Resources that are sent before other calls get their turn. */
const itemsPerBreath = 256;

/** Looking after the store that is served. */
export function storeMethods(context: HandlerContext, given: StoreAdmin | undefined): readonly ServerMethod[] {
  const { environment, codec } = context;
  const admin = (): StoreAdmin => {
    if (given === undefined)
      throw unsupported('the store behind this server is not kept in a file of its own: there is nothing to look after');
    return given;
  };
  const send = (call: ServerCall, message: StoreTaskResponse): void =>
    call.send(frame(controlService.storeCheck.responseSerialize(message)));

  /** Runs a work of the store for a client; one that goes away ends it. */
  const task = async (call: ServerCall, work: (options: StoreTaskOptions) => Promise<object>): Promise<undefined> => {
    using end = endOf(call, context);
    let told = Number.NEGATIVE_INFINITY;
    const result = await work({
      signal: end.signal,
      onProgress: ({ step, done, total }) => {
        if (call.blocked || environment.elapsed() - told < tellEveryMs) return;
        told = environment.elapsed();
        send(call, { step, done, total, result: '' });
      },
    });
    send(call, { step: '', done: 0, total: 0, result: JSON.stringify(result) });
  };

  return [
    streaming(context, controlService.storeCheck, 'control', false, ({ quick }, call) =>
      task(call, (options) => admin().check({ quick, ...options })),
    ),
    streaming(context, controlService.storeCompact, 'control', false, (request, call) =>
      task(call, (options) => admin().compact({ ...request, ...options })),
    ),
    streaming(context, controlService.storeBackup, 'control', false, ({ file, force }, call) =>
      task(call, (options) => admin().backup(file, { force, ...options })),
    ),
    streaming(context, controlService.storeExport, 'control', false, async (_request, call) => {
      using end = endOf(call, context);
      let count = 0;
      for await (const resource of admin().export({ signal: end.signal })) {
        call.send(itemsFrame([codec.encode(resource)]));
        if (call.blocked) await new Promise<void>((resolve) => call.whenUnblocked(resolve));
        if (++count % itemsPerBreath === 0) await environment.breathe();
      }
      return undefined;
    }),
  ];
}
