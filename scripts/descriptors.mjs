// Descriptors of the services in src/wire/proto/, for server reflection. `node scripts/descriptors.mjs` writes
// src/wire/descriptors.ts anew; a test holds it to the files.
import { readFileSync, writeFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { create, toBinary } from '@bufbuild/protobuf';
import {
  FileDescriptorProtoSchema,
  file_google_protobuf_empty,
  file_google_protobuf_timestamp,
  FieldDescriptorProto_Label as Label,
  FieldDescriptorProto_Type as Type,
} from '@bufbuild/protobuf/wkt';

const root = resolve(dirname(fileURLToPath(import.meta.url)), '..');
const target = join(root, 'src/wire/descriptors.ts');

const scalars = { string: Type.STRING, bytes: Type.BYTES, bool: Type.BOOL, int32: Type.INT32, int64: Type.INT64 };

/**
 * Reads the subset of the language that our files use.
 * @param {string} name
 * @returns {{ file: import('@bufbuild/protobuf/wkt').FileDescriptorProto, packageName: string, services: Map<string, Map<string, { request: string, response: string, stream: boolean }>> }}
 */
export function readProto(name, text = readFileSync(join(root, 'src/wire/proto', name), 'utf8')) {
  const source = text.replace(/\/\/.*$/gm, '');
  const packageName = /package ([\w.]+);/.exec(source)[1];
  const blocks = (keyword) =>
    [...source.matchAll(new RegExp(`^${keyword} (\\w+) \\{(\\}|[\\s\\S]*?^\\})`, 'gm'))].map(([, block, body]) => ({ block, body }));
  const messages = blocks('message');
  const outside = source.replace(/^message (\w+) \{(\}|[\s\S]*?^\})/gm, '');
  const enumsIn = (body, parent) =>
    [...body.matchAll(/\benum (\w+) \{([\s\S]*?)\}/g)].map(([, enumName, values]) => ({
      name: enumName,
      parent,
      value: [...values.matchAll(/(\w+) = (\d+);/g)].map(([, item, number]) => ({ name: item, number: Number(number) })),
    }));
  const enums = [...messages.flatMap(({ block, body }) => enumsIn(body, block)), ...enumsIn(outside, '')];
  const full = (word) => (word.includes('.') ? `.${word}` : `.${packageName}.${word}`);
  const typeOf = (word, parent) => {
    if (scalars[word] !== undefined) return { type: scalars[word] };
    const found = enums.find((item) => item.name === word && (item.parent === parent || item.parent === ''));
    if (found === undefined) return { type: Type.MESSAGE, typeName: full(word) };
    return { type: Type.ENUM, typeName: `.${packageName}.${found.parent === '' ? '' : `${found.parent}.`}${word}` };
  };
  const enumsOf = (parent) =>
    enums.filter((item) => item.parent === parent).map(({ name: enumName, value }) => ({ name: enumName, value }));
  const services = new Map(
    blocks('service').map(({ block, body }) => [
      block,
      new Map(
        [...body.matchAll(/rpc (\w+)\((stream )?([\w.]+)\) returns \((stream )?([\w.]+)\);/g)].map(
          ([, method, incoming, request, outgoing, response]) => [
            method,
            { request, response, stream: outgoing !== undefined, requestStream: incoming !== undefined },
          ],
        ),
      ),
    ]),
  );
  const file = create(FileDescriptorProtoSchema, {
    name,
    package: packageName,
    syntax: 'proto3',
    dependency: [...source.matchAll(/import "(.*)";/g)].map(([, path]) => path),
    enumType: enumsOf(''),
    messageType: messages.map(({ block, body }) => ({
      name: block,
      enumType: enumsOf(block),
      ...fieldsOf(block, body, packageName, typeOf),
    })),
    service: [...services].map(([service, methods]) => ({
      name: service,
      method: [...methods].map(([method, { request, response, stream, requestStream }]) => ({
        name: method,
        inputType: full(request),
        outputType: full(response),
        ...(requestStream && { clientStreaming: true }),
        ...(stream && { serverStreaming: true }),
      })),
    })),
  });
  return { file, packageName, services };
}

function fieldsOf(message, body, packageName, typeOf) {
  const field = [];
  const nestedType = [];
  const oneofDecl = [];
  const optional = [];
  const plain = body.replace(/\benum \w+ \{[\s\S]*?\}/g, '');
  const pattern = /oneof (\w+) \{|(?:(repeated|optional) )?(map<string, string>|[\w.]+) (\w+) = (\d+);|\}/g;
  let oneof;
  for (const [all, oneofName, label, word, name, number] of plain.matchAll(pattern)) {
    if (oneofName !== undefined) {
      oneof = oneofDecl.length;
      oneofDecl.push({ name: oneofName });
    } else if (all === '}') oneof = undefined;
    else if (word.startsWith('map')) {
      const entry = `${name[0].toUpperCase()}${name.slice(1)}Entry`;
      const text = (key, at) => ({ name: key, number: at, label: Label.OPTIONAL, type: Type.STRING });
      nestedType.push({ name: entry, options: { mapEntry: true }, field: [text('key', 1), text('value', 2)] });
      field.push({
        name,
        number: Number(number),
        label: Label.REPEATED,
        type: Type.MESSAGE,
        typeName: `.${packageName}.${message}.${entry}`,
      });
    } else {
      const known = {
        name,
        number: Number(number),
        label: label === 'repeated' ? Label.REPEATED : Label.OPTIONAL,
        ...typeOf(word, message),
      };
      if (oneof !== undefined) known.oneofIndex = oneof;
      if (label === 'optional') optional.push(known);
      field.push(known);
    }
  }
  // Oneofs that stand for presence alone come last.
  for (const known of optional) {
    known.proto3Optional = true;
    known.oneofIndex = oneofDecl.length;
    oneofDecl.push({ name: `_${known.name}` });
  }
  return { field, nestedType, oneofDecl };
}

/** Everything that a name in a file stands for: services, methods, messages and enums, nested ones too. */
function symbolsOf(file) {
  const inside = (prefix, message) => [
    `${prefix}.${message.name}`,
    ...message.enumType.map((item) => `${prefix}.${message.name}.${item.name}`),
    ...message.nestedType.flatMap((item) => inside(`${prefix}.${message.name}`, item)),
  ];
  return [
    ...file.service.flatMap(({ name, method }) => [
      `${file.package}.${name}`,
      ...method.map((item) => `${file.package}.${name}.${item.name}`),
    ]),
    ...file.messageType.flatMap((message) => inside(file.package, message)),
    ...file.enumType.map(({ name }) => `${file.package}.${name}`),
  ];
}

/** The text of src/wire/descriptors.ts. */
export function descriptorsText() {
  const reflection = readFileSync(join(root, 'src/wire/proto/reflection.proto'), 'utf8');
  const files = [
    file_google_protobuf_timestamp.proto,
    file_google_protobuf_empty.proto,
    readProto('state.proto').file,
    readProto('control.proto').file,
    readProto('health.proto').file,
    readProto('reflection.proto').file,
    readProto('reflection_v1alpha.proto', reflection.replace('grpc.reflection.v1', 'grpc.reflection.v1alpha')).file,
  ];
  const entries = files.map((file) => {
    const services = file.service.map(({ name }) => `${file.package}.${name}`);
    const list = (items) => `[${items.map((item) => `'${item}'`).join(', ')}]`;
    const bytes = Buffer.from(toBinary(FileDescriptorProtoSchema, file)).toString('base64');
    return `  {\n    name: '${file.name}',\n    imports: ${list(file.dependency)},\n    services: ${list(services)},\n    symbols: '${symbolsOf(file).join(' ')}',\n    bytes: '${bytes}',\n  },\n`;
  });
  return `// Written by scripts/descriptors.mjs from the files in proto/.

/** One file of message and service descriptors. */
export interface DescriptorFile {
  readonly name: string;
  readonly imports: readonly string[];
  readonly services: readonly string[];
  /** Full names of what it defines, between blanks. */
  readonly symbols: string;
  /** A FileDescriptorProto, base64. */
  readonly bytes: string;
}

// biome-ignore format: it is written by a program.
export const descriptorFiles: readonly DescriptorFile[] = [
${entries.join('')}];
`;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) writeFileSync(target, descriptorsText());
