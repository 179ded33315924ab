import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    exclude: ['test/slow/**', 'test/infra/**', 'test/aws/**'],
    testTimeout: 30_000,
  },
});
