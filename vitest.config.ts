import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    exclude: ['test/slow/**', 'test/infra/**', 'test/aws/**'],
    // Machines are shared: a time-out tells a hang, not slowness.
    testTimeout: 120_000,
  },
});
