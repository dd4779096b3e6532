/** The read tools as a model is told of them. */
import type { ChatTool } from "../../platform/ports.ts";

const prefix = {
  type: "string",
  description: "Only paths that begin with this, `turn-01/results/` say. Leave it out for everything.",
};

export const readTools: ChatTool[] = [
  {
    name: "list",
    description: "Lists the files that you may open, one a line: path, size, kind.",
    parameters: { type: "object", properties: { prefix }, additionalProperties: false },
  },
  {
    name: "read",
    description:
      "Opens a text file. Long files come in pages of about 30 KB: go on with the offset that the page names. A long transcript comes as its head and tail; open the parts between by number.",
    parameters: {
      type: "object",
      properties: {
        path: { type: "string", description: "A path as list shows it." },
        offset: { type: "integer", minimum: 0, description: "Byte to begin at." },
        part: { type: "integer", minimum: 1, description: "Part of a long transcript, from 1." },
      },
      required: ["path"],
      additionalProperties: false,
    },
  },
  {
    name: "search",
    description: "Finds lines that hold a text (upper and lower case alike) in all text files below a prefix.",
    parameters: {
      type: "object",
      properties: { text: { type: "string", minLength: 1, maxLength: 500 }, prefix },
      required: ["text"],
      additionalProperties: false,
    },
  },
];
