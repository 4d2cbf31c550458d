import { resolve } from 'node:path';
import type { Resource } from '../../resource/index.ts';
import { SteadystateError } from '../../resource/index.ts';
import type { StoreAdmin, StoreTaskOptions } from '../../state/index.ts';
import type { Method, ResourceAnswer, ResourceCodec, StoreTaskResponse } from '../../wire/index.ts';
import { controlService } from '../../wire/index.ts';
import type { Calls } from './calls.ts';

/** Looks after the store behind a server; the paths of backups are paths on the server's machine. */
export function remoteAdmin(calls: Calls, codec: ResourceCodec): StoreAdmin {
  async function task<Request, Result>(
    method: Method<Request, StoreTaskResponse>,
    request: Request,
    { signal, onProgress }: StoreTaskOptions,
  ): Promise<Result> {
    signal?.throwIfAborted();
    for await (const { step, done, total, result } of calls.messages(calls.stream(method, request, undefined), {
      call: 'control',
      signal,
    })) {
      if (result !== '') return JSON.parse(result) as Result;
      onProgress?.({ step, done, total });
    }
    throw new SteadystateError('Unavailable', 'the server ended the work without a result; look at what it left, and try again');
  }

  return {
    check: ({ quick = false, ...options } = {}) => task(controlService.storeCheck, { quick }, options),
    compact: ({ keep, olderThanMs, ...options } = {}) =>
      task(
        controlService.storeCompact,
        { ...(keep !== undefined && { keep }), ...(olderThanMs !== undefined && { olderThanMs: Math.ceil(olderThanMs) }) },
        options,
      ),
    backup: (file, { force = false, ...options } = {}) => task(controlService.storeBackup, { file: resolve(file), force }, options),
    async *export({ signal } = {}): AsyncGenerator<Resource> {
      signal?.throwIfAborted();
      const stream = calls.stream(controlService.storeExport, {}, undefined);
      for await (const { resource } of calls.messages(stream, { call: 'control', signal }))
        yield codec.read((resource ?? {}) as NonNullable<ResourceAnswer['resource']>);
    },
  };
}
