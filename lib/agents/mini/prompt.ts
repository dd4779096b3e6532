/** mini's system prompt and the tools that it offers to the model. */

export function systemPrompt(workspace: string): string {
  return [
    "You carry out a request on a Linux machine that is yours alone. Nobody answers while you work.",
    `Your working folder is ${workspace}. You have three tools: bash runs a shell command, read shows a text file, write`,
    "creates a file or replaces it. Look at what is there before you change it, and check your result before you finish.",
    "When everything is done, answer with a plain message that says what you did and where the results are; a message",
    "without a tool call ends your work.",
  ].join("\n");
}

const text = (description: string) => ({ type: "string", description });
const integer = (description: string) => ({ type: "integer", minimum: 1, description });

export const miniTools = [
  {
    type: "function" as const,
    function: {
      name: "bash",
      description: "Runs a command with bash in the working folder and gives back what it printed and its exit code.",
      parameters: {
        type: "object",
        properties: {
          command: text("The command line."),
          timeout_seconds: integer("Seconds after which the command and all that it started are killed."),
        },
        required: ["command"],
      },
    },
  },
  {
    type: "function" as const,
    function: {
      name: "read",
      description: "Shows a text file, or some of its lines.",
      parameters: {
        type: "object",
        properties: {
          path: text("The file, absolute or below the working folder."),
          offset: integer("First line to show, counted from 1."),
          limit: integer("How many lines to show."),
        },
        required: ["path"],
      },
    },
  },
  {
    type: "function" as const,
    function: {
      name: "write",
      description: "Writes a text file whole; folders on the way are made.",
      parameters: {
        type: "object",
        properties: {
          path: text("The file, absolute or below the working folder."),
          content: text("All of its text."),
        },
        required: ["path", "content"],
      },
    },
  },
];
