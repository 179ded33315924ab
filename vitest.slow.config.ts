import { defineConfig } from 'vitest/config';

/** Suites that take minutes: kills, faults, full sweeps. `.ci/run` runs them after the others. */
export default defineConfig({
  test: {
    include: ['test/slow/**/*.test.ts'],
    fileParallelism: false,
    testTimeout: 300_000,
    hookTimeout: 120_000,
  },
});
