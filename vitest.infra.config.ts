import { defineConfig } from 'vitest/config';

/** What is deployed, looked at in the synthesized templates. Needs no account and no network. */
export default defineConfig({
  test: { include: ['test/infra/**/*.test.ts'], testTimeout: 120_000, hookTimeout: 120_000 },
});
