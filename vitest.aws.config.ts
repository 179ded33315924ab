import { defineConfig } from 'vitest/config';

/** Suites that talk to an AWS emulator of their own; see docs/emulator.md. */
export default defineConfig({
  test: {
    include: ['test/aws/**/*.test.ts'],
    globalSetup: ['test/aws/assemblies.ts'],
    // Machines are shared: a time-out tells a hang, not slowness.
    testTimeout: 600_000,
    hookTimeout: 600_000,
    // The emulator does its work on one core; queue tests mostly wait.
    maxWorkers: 2,
  },
});
