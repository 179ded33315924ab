import { defineConfig } from 'vitest/config';

/** Suites that talk to an AWS emulator of their own; see docs/emulator.md. */
export default defineConfig({
  test: {
    include: ['test/aws/**/*.test.ts'],
    testTimeout: 120_000,
    hookTimeout: 120_000,
    // The emulator does its work on one core; queue tests mostly wait.
    maxWorkers: 2,
  },
});
