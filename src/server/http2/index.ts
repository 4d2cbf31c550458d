export { errorCodes } from './frames.ts';
export { packHeaders } from './hpack.ts';
export type { RequestHead } from './request-head.ts';
export { ServerSession } from './server-session.ts';
export type { ServerStream, StreamReader } from './server-stream.ts';
