import type { Span, Tracer } from '../environment/index.ts';
import { noTracer } from '../environment/index.ts';
import type { CallOptions } from '../state/index.ts';
import { failSpan } from '../state/index.ts';
import { readTraceParent, traceParentKey } from '../wire/index.ts';
import type { ServerCall } from './grpc/server-call.ts';

/** Runs a handler in the span of its call, below the one that its caller named. A watch ends its span with its stream. */
export async function inCallSpan<Answer>(
  tracer: Tracer,
  path: string,
  call: ServerCall,
  handle: (part: CallOptions) => Promise<Answer>,
): Promise<Answer> {
  if (tracer === noTracer) return handle({});
  const name = path.slice(1);
  const [service = '', method = ''] = name.split('/');
  const parent = call.header(traceParentKey);
  const span = tracer.start(name, {
    kind: 'server',
    parent: parent === undefined ? undefined : readTraceParent(parent),
    attributes: { 'rpc.system': 'grpc', 'rpc.service': service, 'rpc.method': method },
  });
  try {
    return await span.run(() => handle(within(span)));
  } catch (error) {
    failSpan(span, error);
    throw error;
  } finally {
    span.end();
  }
}

/** Calls of the state that are part of a span. */
function within({ context }: Span): CallOptions {
  return context === undefined ? {} : { span: context };
}
