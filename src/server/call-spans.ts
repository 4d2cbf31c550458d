import type { Metadata as GrpcMetadata } from '@grpc/grpc-js';
import type { Span, Tracer } from '../environment/index.ts';
import { noSpan, noTracer } from '../environment/index.ts';
import type { CallOptions } from '../state/index.ts';
import { readTraceParent, traceParentKey } from '../wire/index.ts';

/** The span of a call that came in, below the one that its caller named. A watch ends its span with its stream. */
export function startCallSpan(tracer: Tracer, call: { readonly metadata: GrpcMetadata; getPath(): string }): Span {
  if (tracer === noTracer) return noSpan;
  const [parent] = call.metadata.get(traceParentKey);
  const name = call.getPath().replace(/^\//, '');
  const [service = '', method = ''] = name.split('/');
  return tracer.start(name, {
    kind: 'server',
    parent: typeof parent === 'string' ? readTraceParent(parent) : undefined,
    attributes: { 'rpc.system': 'grpc', 'rpc.service': service, 'rpc.method': method },
  });
}

/** Calls of the state that are part of a span. */
export function within({ context }: Span): CallOptions {
  return context === undefined ? {} : { span: context };
}
