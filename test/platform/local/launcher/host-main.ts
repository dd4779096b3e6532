/** A process that launches one executor and stays: `host-main.js <bwrap|none> <objects> <bundles>`. */
import { openBubblewrapLauncher } from "../../../../lib/platform/local/launcher/bubblewrap.ts";
import { detectIsolation } from "../../../../lib/platform/local/launcher/isolation.ts";
import { openUnisolatedLauncher } from "../../../../lib/platform/local/launcher/unisolated.ts";
import { spec } from "./spec.ts";

const [isolation, objects = "", bundles = ""] = process.argv.slice(2);
const options = { objects, tokens: `${objects}/tokens.sock`, secrets: { get: async () => null }, bundles };
const found = await detectIsolation();
if (isolation === "bwrap" && !found.bwrap) throw new Error(found.reason);
const launcher =
  isolation === "bwrap" && found.bwrap
    ? await openBubblewrapLauncher({ ...options, bwrap: found })
    : await openUnisolatedLauncher(options);
// What a Ctrl-C means is for the host to decide; here, nothing.
process.on("SIGINT", () => {});
setInterval(() => {}, 60_000);
process.stdout.write("launching\n");
await launcher.launch(spec("m1"));
