export interface HttpProbe {
  readonly url: string;
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly limitMs: number;
  readonly signal?: AbortSignal;
  /** Answers as soon as the status is known, with an empty body: it may be one that never ends. @default false */
  readonly statusOnly?: boolean;
}

/** The little network that the library's own checks need. No redirects are followed. */
export interface NetworkPort {
  /** One HTTP request; the body is cut after 64 KiB. Rejects when no answer came within the limit. */
  http(probe: HttpProbe): Promise<{ readonly status: number; readonly body: string }>;
  /** Connects and closes. Rejects with the system's error or a time-out. */
  connect(target: { readonly host: string; readonly port: number; readonly limitMs: number; readonly signal?: AbortSignal }): Promise<void>;
  /** Whether a TCP port can be bound now: on `host`, by default on the loopback addresses of both families that there are. */
  portFree(port: number, host?: string): Promise<boolean>;
  /** A TCP port that was free a moment ago, as `portFree` tells it. */
  freePort(host?: string): Promise<number>;
}
