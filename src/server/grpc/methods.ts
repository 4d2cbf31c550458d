import type { CallName } from '../../wire/index.ts';
import type { ServerCall, Trailers } from './server-call.ts';

/** What one path answers. Messages come without their prefix and go with it. Errors become the status that `name` asks for. */
export type ServerMethod = UnaryMethod | StreamMethod | ConversationMethod;

interface MethodBase {
  /** `/package.Service/Method`, exactly. */
  readonly path: string;
  /** What its errors are told as. */
  readonly name: CallName;
}

export interface UnaryMethod extends MethodBase {
  readonly kind: 'unary';
  answer(message: Buffer, call: ServerCall): Promise<{ readonly framed: Uint8Array; readonly trailers?: Trailers }>;
}

/** One message in, many out. */
export interface StreamMethod extends MethodBase {
  readonly kind: 'stream';
  /** It stays open until the client goes, and counts as a watch. */
  readonly isWatch: boolean;
  /** Resolves when all was sent. */
  stream(message: Buffer, call: ServerCall): Promise<Trailers | undefined>;
}

/** Many messages in, each with one answer. */
export interface ConversationMethod extends MethodBase {
  readonly kind: 'conversation';
  answer(message: Buffer): Uint8Array;
}
