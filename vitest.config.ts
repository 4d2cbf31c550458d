import { defineConfig } from 'vitest/config';

// The long suites run for minutes; `.ci/run` asks for them by setting STEADYSTATE_LONG.
const long = process.env.STEADYSTATE_LONG === '1';

export default defineConfig({
  test: {
    include: long ? ['test/long/**/*.test.ts'] : ['src/**/*.test.ts', 'test/**/*.test.ts'],
    exclude: long ? ['node_modules/**'] : ['node_modules/**', 'test/long/**'],
    pool: 'forks',
    // Half of the tests wait for programs that they started: a worker for each processor is not too many.
    maxWorkers: '100%',
    globals: false,
    testTimeout: long ? 300_000 : 20_000,
    hookTimeout: long ? 120_000 : 30_000,
    teardownTimeout: 10_000,
  },
});
