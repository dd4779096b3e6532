import { defineConfig } from "vitest/config";

export default defineConfig({
  test: {
    include: ["test/**/*.test.ts"],
    // Tests that start real processes use the bundles; this makes them once, before the first test.
    globalSetup: ["test/build-once.ts"],
    testTimeout: 30_000,
    hookTimeout: 30_000,
  },
});
