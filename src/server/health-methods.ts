import { SteadystateError } from '../resource/index.ts';
import { healthService, servingStatus } from '../wire/index.ts';
import type { HandlerContext } from './context.ts';
import { endOf, streaming, unary } from './context.ts';
import { frame } from './grpc/framing.ts';
import type { ServerMethod } from './grpc/methods.ts';

/** `grpc.health.v1`: the server as a whole (no name) and each of its services serve until the server stops. */
export function healthMethods(context: HandlerContext, services: ReadonlySet<string>): readonly ServerMethod[] {
  const { stopping } = context;
  const status = (service: string): number => {
    if (service !== '' && !services.has(service)) return servingStatus.serviceUnknown;
    return stopping.aborted ? servingStatus.notServing : servingStatus.serving;
  };
  return [
    unary(context, healthService.check, 'get', async ({ service }) => {
      const found = status(service);
      if (found === servingStatus.serviceUnknown)
        throw new SteadystateError('NotFound', `there is no service ${service.slice(0, 200)}; there are ${[...services].join(', ')}`);
      return { status: found };
    }),
    streaming(context, healthService.watch, 'watch', true, async ({ service }, call) => {
      using end = endOf(call, context);
      const tell = (): void => call.send(frame(healthService.watch.responseSerialize({ status: status(service) })));
      tell();
      if (!end.signal.aborted) await new Promise<void>((resolve) => end.signal.addEventListener('abort', () => resolve(), { once: true }));
      if (!call.cancelled && stopping.aborted) tell();
      return undefined;
    }),
  ];
}
