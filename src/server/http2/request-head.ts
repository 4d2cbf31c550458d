import type { HeaderField, HeaderList } from './hpack.ts';

/** The headers of one request, which HTTP/2 finds nothing wrong with. */
export class RequestHead {
  readonly method: string;
  readonly path: string;
  readonly #fields: readonly HeaderField[];

  constructor(method: string, path: string, fields: readonly HeaderField[]) {
    this.method = method;
    this.path = path;
    this.#fields = fields;
  }

  /** The first of that name, which is lower case. */
  get(name: string): string | undefined {
    for (const field of this.#fields) if (field.name === name) return field.value;
    return undefined;
  }
}

const pseudo = new Set([':method', ':scheme', ':path', ':authority']);
/** Headers of one connection, which HTTP/2 has no use for. */
const ofConnections = new Set(['connection', 'proxy-connection', 'keep-alive', 'transfer-encoding', 'upgrade']);

/** The head of a request; `undefined` for one that HTTP/2 calls malformed. */
export function readHead({ fields, wellFormed }: HeaderList): RequestHead | undefined {
  if (!wellFormed) return undefined;
  const found: Record<string, string | undefined> = {};
  let regular = false;
  for (const { name, value } of fields) {
    if (name.charCodeAt(0) === 0x3a) {
      // They come first, each once, and there are no others.
      if (regular || found[name] !== undefined || !pseudo.has(name)) return undefined;
      found[name] = value;
    } else {
      regular = true;
      if (ofConnections.has(name) || (name === 'te' && value !== 'trailers')) return undefined;
    }
  }
  const { ':method': method, ':path': path, ':scheme': scheme } = found;
  if (method === undefined || path === undefined || path === '' || scheme === undefined) return undefined;
  return new RequestHead(method, path, fields);
}

/** Whether fields may stand behind a request. */
export function areTrailers({ fields, wellFormed }: HeaderList): boolean {
  return wellFormed && fields.every(({ name }) => name.charCodeAt(0) !== 0x3a && !ofConnections.has(name));
}
