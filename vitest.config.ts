import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    exclude: ['test/slow/**', 'test/infra/**', 'test/aws/**'],
    // Left alone Vitest keeps a core free for itself, which is half of a machine of two.
    maxWorkers: '100%',
    // Machines are shared: a time-out tells a hang, not slowness.
    testTimeout: 120_000,
    hookTimeout: 120_000,
  },
});
