import { defineConfig } from 'vitest/config';

/** Run by `test/interop/run`, which builds the server that these tests talk to. */
// biome-ignore lint/style/noDefaultExport: vitest asks for one.
export default defineConfig({
  test: { include: ['test/interop/**/*.interop.ts'], pool: 'forks', globals: false, testTimeout: 30_000, hookTimeout: 30_000 },
});
