import type { Codec } from './codec.ts';
import { encoded, int32, message, nested, optional, repeated, text } from './codec.ts';
import { method } from './method.ts';

/** The messages of `grpc.health.v1` and `grpc.reflection`, which tools and probes speak. */

export interface HealthCheckRequest {
  /** Empty: the server as a whole. */
  readonly service: string;
}
const healthCheckRequestCodec: Codec<HealthCheckRequest> = message({ service: text(1) });

export const servingStatus = { unknown: 0, serving: 1, notServing: 2, serviceUnknown: 3 } as const;

export interface HealthCheckResponse {
  readonly status: number;
}
const healthCheckResponseCodec: Codec<HealthCheckResponse> = message({ status: int32(1) });

export const healthService = {
  check: method('/grpc.health.v1.Health/Check', healthCheckRequestCodec, healthCheckResponseCodec),
  watch: method('/grpc.health.v1.Health/Watch', healthCheckRequestCodec, healthCheckResponseCodec, true),
} as const;

export interface ReflectionRequest {
  readonly host: string;
  readonly fileByFilename?: string;
  readonly fileContainingSymbol?: string;
  readonly fileContainingExtension?: { readonly containingType: string; readonly extensionNumber: number };
  readonly allExtensionNumbersOfType?: string;
  readonly listServices?: string;
}
export const reflectionRequestCodec: Codec<ReflectionRequest> = message<ReflectionRequest>({
  host: text(1),
  fileByFilename: optional(text(3)),
  fileContainingSymbol: optional(text(4)),
  fileContainingExtension: optional(
    nested(5, message<NonNullable<ReflectionRequest['fileContainingExtension']>>({ containingType: text(1), extensionNumber: int32(2) })),
  ),
  allExtensionNumbersOfType: optional(text(6)),
  listServices: optional(text(7)),
});

export interface ReflectionResponse {
  readonly validHost: string;
  /** The request, as it came. */
  readonly originalRequest: Uint8Array;
  readonly files?: { readonly file: readonly Uint8Array[] };
  readonly extensionNumbers?: { readonly baseTypeName: string };
  readonly services?: { readonly service: readonly { readonly name: string }[] };
  readonly error?: { readonly code: number; readonly message: string };
}
export const reflectionResponseCodec: Codec<ReflectionResponse> = message<ReflectionResponse>({
  validHost: text(1),
  originalRequest: encoded(2),
  files: optional(nested(4, message<NonNullable<ReflectionResponse['files']>>({ file: repeated(encoded(1)) }))),
  extensionNumbers: optional(nested(5, message<NonNullable<ReflectionResponse['extensionNumbers']>>({ baseTypeName: text(1) }))),
  services: optional(
    nested(
      6,
      message<NonNullable<ReflectionResponse['services']>>({
        service: repeated(nested(1, message<{ readonly name: string }>({ name: text(1) }))),
      }),
    ),
  ),
  error: optional(nested(7, message<NonNullable<ReflectionResponse['error']>>({ code: int32(1), message: text(2) }))),
});

/** Both names under which reflection is asked for. */
export const reflectionPaths = ['v1', 'v1alpha'].map((version) => `/grpc.reflection.${version}.ServerReflection/ServerReflectionInfo`);
