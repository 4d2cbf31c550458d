import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect } from 'vitest';
import type { OpenRequest } from '../src/backends/sqlite/protocol.ts';
import type { Environment } from '../src/environment/index.ts';

export const kind = { namespace: 'default', type: 'Things.example.dev' };
export const thing = (id: string, spec: unknown = { size: 1 }, of = kind) => ({ metadata: { ...of, id }, spec });

/** Each test gets a folder of its own for a store's file; the folder goes with it, and nothing may be left open. */
export function inFreshFolder(environment: Environment, begin: (folder: string, file: string) => void): void {
  let folder: string;
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'steadystate-sqlite-'));
    begin(folder, join(folder, 'state.db'));
  });
  afterEach(() => {
    rmSync(folder, { recursive: true, force: true });
    expect(environment.open.counts()).toEqual({});
  });
}

/** Opens a file as the writer of a store does. */
export const openRequest = (file: string, more: Partial<OpenRequest> = {}): OpenRequest => ({
  call: 'open',
  file,
  holder: 'a test',
  newStoreId: '0123456789abcdef0123456789abcdef',
  historyLimit: 1000,
  historyAgeMs: undefined,
  maxPages: undefined,
  ...more,
});
