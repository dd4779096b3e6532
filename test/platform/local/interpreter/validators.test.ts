/**
 * Every .asl.json under lib/ by both public validators, which find different faults, and by our own loader. What they
 * complain of wrongly stands in one table with the reason; a complaint that is not in it fails, and so does a row of the
 * table that nothing complains of any more.
 */
import { readdirSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { basename, join } from "node:path";
import { fileURLToPath } from "node:url";
import { getLanguageService, TextDocument } from "amazon-states-language-service";
import { describe, expect, it } from "vitest";
import { loadMachine } from "../../../../lib/platform/local/interpreter/interpreter.ts";
import { ScriptedRandom } from "./setting.ts";

const require = createRequire(import.meta.url);
const aslValidator = require("asl-validator") as (definition: unknown) => { isValid: boolean; errors: unknown[] };

type Tool = "asl-validator" | "amazon-states-language-service";
/** Complaints about what Step Functions accepts. `complaint` matches the complaint's text. */
const falseAlarms: { tool: Tool; file: string; complaint: RegExp; reason: string }[] = [];

const lib = fileURLToPath(new URL("../../../../lib", import.meta.url));
const files = readdirSync(lib, { recursive: true, encoding: "utf8" })
  .filter((path) => path.endsWith(".asl.json"))
  .sort();

/** Values of the placeholders as the stack would give them: the resources' ARNs. */
function filled(text: string): { text: string; placeholders: Record<string, string> } {
  const placeholders: Record<string, string> = {};
  for (const [, name] of text.matchAll(/\$\{([^}]*)\}/g)) {
    placeholders[name as string] = `arn:aws:states:us-east-1:123456789012:stateMachine:${name}`;
  }
  return { text: text.replace(/\$\{([^}]*)\}/g, (_, name: string) => placeholders[name] as string), placeholders };
}

const service = getLanguageService({});
async function complaintsOf(tool: Tool, text: string): Promise<string[]> {
  if (tool === "asl-validator") {
    // It writes into what it is given.
    return aslValidator(JSON.parse(text)).errors.map((error) => JSON.stringify(error));
  }
  const document = TextDocument.create("file:///machine.asl.json", "asl", 1, text);
  const diagnostics = await service.doValidation(document, service.parseJSONDocument(document));
  return diagnostics.map(({ message, range }) => `line ${range.start.line + 1}: ${message}`);
}

describe("state machine files", () => {
  it("are the four", () => {
    expect(files.map((file) => basename(file, ".asl.json"))).toEqual(["attempt", "judge", "lane", "sweep"]);
  });

  for (const file of files) {
    const source = readFileSync(join(lib, file), "utf8");
    const { text, placeholders } = filled(source);
    for (const tool of ["asl-validator", "amazon-states-language-service"] as const) {
      it(`${file} passes ${tool}`, async () => {
        const known = falseAlarms.filter((alarm) => alarm.tool === tool && alarm.file === basename(file));
        const complaints = await complaintsOf(tool, text);
        expect(complaints.filter((complaint) => !known.some((alarm) => alarm.complaint.test(complaint)))).toEqual([]);
        expect(known.filter((alarm) => !complaints.some((complaint) => alarm.complaint.test(complaint)))).toEqual([]);
      });
    }

    it(`${file} loads`, () => {
      const ports = { clock: { now: () => 0 }, random: new ScriptedRandom() };
      const machine = loadMachine({ name: "machine", file, definition: source }, placeholders, ports);
      expect(machine.flow.states.size).toBeGreaterThan(0);
      expect(() => loadMachine({ name: "machine", file, definition: source }, {}, ports)).toThrow(/placeholder/);
    });
  }

  it("both validators can complain", async () => {
    const wrong = JSON.stringify({
      QueryLanguage: "JSONata",
      StartAt: "A",
      States: { A: { Type: "Pass", Next: "B" } },
    });
    expect(await complaintsOf("asl-validator", wrong)).not.toEqual([]);
    expect(await complaintsOf("amazon-states-language-service", wrong)).not.toEqual([]);
  });
});
