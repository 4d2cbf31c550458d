import { context, SpanKind, SpanStatusCode, trace } from '@opentelemetry/api';
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks';
import type { ReadableSpan } from '@opentelemetry/sdk-trace-base';
import { AlwaysOffSampler, BasicTracerProvider, InMemorySpanExporter, SimpleSpanProcessor } from '@opentelemetry/sdk-trace-base';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { memoryState } from '../../backends/memory/index.ts';
import { nodeEnvironment } from '../../environment/index.ts';
import { createRuntime } from '../../runtime/index.ts';
import { traced, wrapCore } from '../../state/index.ts';
import { openTelemetryTracer } from './index.ts';

const kind = { namespace: 'default', type: 'Things.example.dev' };
let exporter: InMemorySpanExporter;
let provider: BasicTracerProvider;

beforeEach(() => {
  exporter = new InMemorySpanExporter();
  provider = new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] });
  context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
});
afterEach(async () => {
  context.disable();
  await provider.shutdown();
});

const named = (name: string): ReadableSpan => {
  const found = exporter.getFinishedSpans().find((span) => span.name === name);
  if (found === undefined) throw new Error(`no span ${name} among ${exporter.getFinishedSpans().map((span) => span.name)}`);
  return found;
};

test('a reconcile, what it reads, and what another library does meanwhile are one trace', async () => {
  const other = provider.getTracer('another library');
  const environment = nodeEnvironment({ tracer: openTelemetryTracer(provider.getTracer('test')) });
  await using core = memoryState({ environment });
  const state = traced(core, environment.tracer);
  await wrapCore(core, { environment }).create({ metadata: { ...kind, id: 'a' }, spec: 1 });
  const runtime = createRuntime({ state, environment });
  const stop = new AbortController();
  let ran = (): void => {};
  const once = new Promise<void>((resolve) => {
    ran = resolve;
  });
  runtime.register({
    name: 'baker',
    inputs: [{ ...kind, kind: 'primary' }],
    outputs: [],
    reconcile: async (run, { pointer }) => {
      await run.get(pointer);
      await environment.breathe();
      other.startSpan('fetch').end();
      run.span.addEvent('baked', { loaves: 3 });
      ran();
      throw new Error('no flour');
    },
  });
  const running = runtime.run(stop.signal);
  await once;
  stop.abort();
  await running;
  const reconcile = named('reconcile');
  expect(reconcile.parentSpanContext).toBeUndefined();
  expect(reconcile.attributes).toMatchObject({ 'steadystate.controller': 'baker', 'steadystate.id': 'a' });
  expect(reconcile.events.map((event) => [event.name, event.attributes?.loaves])).toContainEqual(['baked', 3]);
  for (const name of ['state.get', 'fetch']) {
    expect(named(name).parentSpanContext?.spanId, name).toBe(reconcile.spanContext().spanId);
    expect(named(name).spanContext().traceId).toBe(reconcile.spanContext().traceId);
  }
});

test('a failure is an exception and the status; a kind and a parent from elsewhere are kept', () => {
  const tracer = openTelemetryTracer(provider.getTracer('test'));
  const parent = { traceId: '4bf92f3577b34da6a3ce929d0e0e4736', spanId: '00f067aa0ba902b7', sampled: true, remote: true };
  const span = tracer.start('call', { kind: 'server', parent, attributes: { first: true } });
  span.fail(new RangeError('too far'));
  span.end();
  span.setAttributes({ late: true });
  const done = named('call');
  expect(done.kind).toBe(SpanKind.SERVER);
  expect(done.status).toEqual({ code: SpanStatusCode.ERROR, message: 'too far' });
  expect(done.events[0]).toMatchObject({ name: 'exception', attributes: { 'exception.type': 'RangeError' } });
  expect(done.attributes).toEqual({ first: true });
  expect(done.parentSpanContext).toMatchObject({ spanId: parent.spanId, isRemote: true });
  expect(span.context).toMatchObject({ traceId: parent.traceId, sampled: true });
});

test('without a parent the active span of the program is the parent', async () => {
  const otel = provider.getTracer('program');
  const tracer = openTelemetryTracer(otel);
  const outer = otel.startSpan('outer');
  await context.with(trace.setSpan(context.active(), outer), async () => {
    await Promise.resolve();
    tracer.start('inner').end();
  });
  expect(named('inner').parentSpanContext?.spanId).toBe(outer.spanContext().spanId);
});

test('what is not sampled says so to those below', () => {
  const off = new BasicTracerProvider({ sampler: new AlwaysOffSampler() });
  expect(openTelemetryTracer(off.getTracer('test')).start('quiet').context).toMatchObject({ sampled: false });
  // Without any SDK nothing is recorded, and work goes on.
  const none = openTelemetryTracer().start('nothing');
  expect(none.context).toBeUndefined();
  expect(none.run(() => 7)).toBe(7);
});
