import { SteadystateError } from '../resource/index.ts';
import { maximumYamlBytes } from '../wire/index.ts';

/** Bytes as text. Invalid when they are not UTF-8: what a replacement character stood for would be lost. */
export function utf8Text(bytes: Uint8Array, name: string): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch (cause) {
    throw new SteadystateError('Invalid', `${name} is not UTF-8 text`, { cause });
  }
}

/** All of a stream as text. Invalid when it is not UTF-8, or longer than a text that is read may be: it may never end. */
export async function readText(stream: AsyncIterable<Uint8Array>, name: string): Promise<string> {
  const chunks: Uint8Array[] = [];
  let length = 0;
  for await (const chunk of stream) {
    length += chunk.length;
    if (length > maximumYamlBytes) throw new SteadystateError('Invalid', `${name} is longer than ${maximumYamlBytes} bytes`);
    chunks.push(chunk);
  }
  return utf8Text(Buffer.concat(chunks), name);
}
