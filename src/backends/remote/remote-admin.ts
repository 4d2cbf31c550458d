import { addAbortListener } from 'node:events';
import { resolve } from 'node:path';
import type { ServiceError } from '@grpc/grpc-js';
import type { Resource } from '../../resource/index.ts';
import { SteadystateError } from '../../resource/index.ts';
import type { StoreAdmin, StoreTaskOptions } from '../../state/index.ts';
import type { Method, ResourceAnswer, ResourceCodec, StoreTaskResponse } from '../../wire/index.ts';
import { controlService } from '../../wire/index.ts';
import type { Calls } from './calls.ts';

/** Looks after the store behind a server; the paths of backups are paths on the server's machine. */
export function remoteAdmin(calls: Calls, codec: ResourceCodec): StoreAdmin {
  /** The messages of a stream; its error is one of ours, and an abort rejects with the caller's own reason. */
  async function* messages<Request, Message>(
    stream: ReturnType<typeof calls.stream<Request, Message>>,
    signal: AbortSignal | undefined,
  ): AsyncGenerator<Message> {
    const listener = signal && addAbortListener(signal, () => stream.cancel());
    try {
      for await (const message of stream) yield message as Message;
    } catch (error) {
      signal?.throwIfAborted();
      throw isServiceError(error) ? calls.error(error, { call: 'control' }) : error;
    } finally {
      listener?.[Symbol.dispose]();
      stream.cancel();
    }
  }

  async function task<Request, Result>(
    method: Method<Request, StoreTaskResponse>,
    request: Request,
    { signal, onProgress }: StoreTaskOptions,
  ): Promise<Result> {
    signal?.throwIfAborted();
    for await (const { step, done, total, result } of messages(calls.stream(method, request, undefined), signal)) {
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
      for await (const { resource } of messages(stream, signal))
        yield codec.read((resource ?? {}) as NonNullable<ResourceAnswer['resource']>);
    },
  };
}

function isServiceError(error: unknown): error is ServiceError {
  return typeof error === 'object' && error !== null && typeof (error as ServiceError).code === 'number' && 'metadata' in error;
}
