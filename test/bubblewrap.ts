/** The one place where tests that need bubblewrap are left out on machines without it, or fail where it is required. */
import { describe, it } from "vitest";
import { type Bubblewrap, detectIsolation } from "../lib/platform/local/launcher/isolation.ts";

const found = await detectIsolation();

/** Bubblewrap of this machine; for the insides of `describeWithBubblewrap`. */
export function bubblewrap(): Bubblewrap {
  if (!found.bwrap) throw new Error(found.reason);
  return found;
}

/** `describe` where bubblewrap works. Elsewhere its tests are skipped; with PROCTOR_REQUIRE_BWRAP=1 that is a failure. */
export function describeWithBubblewrap(name: string, body: () => void): void {
  if (found.bwrap) describe(name, body);
  else if (process.env.PROCTOR_REQUIRE_BWRAP === "1") {
    it(`${name}: bubblewrap is required`, () => {
      throw new Error(`${found.reason}; ${found.remedy}`);
    });
  } else describe.skip(name, body);
}
