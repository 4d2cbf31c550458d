/** `host:port`, `[v6]:port`, or a port of 127.0.0.1; `undefined`: none of these. */
export function addressOf(text: string): { readonly host: string; readonly port: number } | undefined {
  const parts = /^(?:(?:\[([^\]]+)\]|([^:]*)):)?([0-9]{1,5})$/.exec(text.trim());
  const port = Number(parts?.[3]);
  if (parts === null || port < 1 || port > 65_535) return undefined;
  const host = parts[1] ?? parts[2] ?? '';
  return { host: host === '' ? '127.0.0.1' : host, port };
}
