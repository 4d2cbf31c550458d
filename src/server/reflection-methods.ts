import type { DescriptorFile, ReflectionRequest, ReflectionResponse } from '../wire/index.ts';
import {
  decode,
  descriptorFiles,
  encode,
  grpcCodes,
  reflectionPaths,
  reflectionRequestCodec,
  reflectionResponseCodec,
} from '../wire/index.ts';
import { frame } from './grpc/framing.ts';
import type { ServerMethod } from './grpc/methods.ts';

type Answer = Omit<ReflectionResponse, 'validHost' | 'originalRequest'>;

/** Tells tools such as grpcurl which services there are, and what their messages look like. */
export function reflectionMethods(): readonly ServerMethod[] {
  return reflectionPaths.map((path) => ({
    kind: 'conversation',
    path,
    name: 'control',
    answer(message) {
      const request = decode(reflectionRequestCodec, message);
      return frame(encode(reflectionResponseCodec, { validHost: request.host, originalRequest: message, ...answerTo(request) }));
    },
  }));
}

/** Names of all services, sorted. */
export const serviceNames: readonly string[] = descriptorFiles.flatMap(({ services }) => services).sort();

function answerTo(request: ReflectionRequest): Answer {
  if (request.listServices !== undefined) return { services: { service: serviceNames.map((name) => ({ name })) } };
  if (request.fileByFilename !== undefined) {
    const name = request.fileByFilename;
    return filesOf(descriptorFiles.find((file) => file.name === name) ?? `no file ${name}`);
  }
  if (request.fileContainingSymbol !== undefined) {
    const symbol = request.fileContainingSymbol.replace(/^\./, '');
    return filesOf(descriptorFiles.find(({ symbols }) => symbols.split(' ').includes(symbol)) ?? `no symbol ${symbol}`);
  }
  if (request.allExtensionNumbersOfType !== undefined) {
    const type = request.allExtensionNumbersOfType;
    // proto3 messages have none.
    if (descriptorFiles.some(({ symbols }) => symbols.split(' ').includes(type))) return { extensionNumbers: { baseTypeName: type } };
    return notFound(`no type ${type}`);
  }
  if (request.fileContainingExtension !== undefined) return notFound(`no extension of ${request.fileContainingExtension.containingType}`);
  return { error: { code: grpcCodes.invalidArgument, message: 'the request asks for nothing' } };
}

/** A file, and all that it imports. */
function filesOf(found: DescriptorFile | string): Answer {
  if (typeof found === 'string') return notFound(found);
  const files = new Set([found]);
  for (const { imports } of files) for (const name of imports) for (const file of descriptorFiles) if (file.name === name) files.add(file);
  return { files: { file: Array.from(files, ({ bytes }) => Buffer.from(bytes, 'base64')) } };
}

function notFound(message: string): Answer {
  return { error: { code: grpcCodes.notFound, message: message.slice(0, 300) } };
}
