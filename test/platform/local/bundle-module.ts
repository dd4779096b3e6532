import { build } from "esbuild";

/** One module with all that it imports (but libsql), so that a process of its own can run it. */
export async function bundleModule(entry: string, outfile: string): Promise<void> {
  await build({
    entryPoints: [entry],
    outfile,
    bundle: true,
    platform: "node",
    format: "esm",
    // Bundled next to the test's folder, so the package is named by where it stands.
    alias: { libsql: new URL("../../../node_modules/libsql/index.js", import.meta.url).pathname },
    external: ["*/node_modules/libsql/index.js"],
    banner: {
      js: "import { createRequire as __createRequire } from 'node:module'; const require = __createRequire(import.meta.url);",
    },
  });
}
