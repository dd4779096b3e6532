/** A repository of the size and shape of UniClawBench's public one, for measuring: same counts, other content. */
import { closeSync, ftruncateSync, mkdirSync, openSync, writeFileSync, writeSync } from "node:fs";
import { join } from "node:path";

/** Counted in the public repository: tasks/, injection/ and configs/ side by side. */
export const publicShape = {
  packages: 404,
  files: 23_960,
  bytes: 353_000_000,
  skills: 87,
  services: 161,
  privacy: 58,
} as const;

const categories = ["101_skill_usage", "102_exploration", "103_long_context", "104_multimodal", "105_cross_platform"];
/** Of a hundred files so many have the size of a note; the rest carries the weight. */
const noteShare = 26;

/**
 * Writes packages like the public ones below `root`; `scale` 1 is all 404 of them. Big files are sparse: they have a size
 * and take no room. Deterministic.
 * @returns how many packages and files there are
 */
export function writeSyntheticRepository(root: string, scale = 1): { packages: number; files: number } {
  const packages = Math.max(2, Math.round(publicShape.packages * scale));
  const perPackage = Math.floor(publicShape.files / publicShape.packages) - 3;
  let files = 0;
  const put = (path: string, text: string): void => {
    writeFileSync(path, text);
    files++;
  };
  mkdirSync(join(root, "configs"), { recursive: true });
  put(join(root, "configs", "models.example.json"), "{}\n");
  mkdirSync(join(root, "tasks", "000_template"), { recursive: true });
  put(join(root, "tasks", "000_template", "task_000_example.yaml"), "task_id: task_000_example\n");
  const weight = Math.round(publicShape.bytes / publicShape.files / (1 - noteShare / 100));
  for (let index = 0; index < packages; index++) {
    const pair = index >> 1;
    const chinese = index % 2 === 1;
    const english = categories[pair % categories.length] ?? "102_exploration";
    const category = chinese ? `2${english.slice(1)}_zh` : english;
    const id = `task_${category.slice(0, 3)}_${String(Math.floor(pair / categories.length) + 1).padStart(2, "0")}_synthetic_${pair}`;
    const folder = join(root, "injection", category, id);
    const skilled = index % Math.round(publicShape.packages / publicShape.skills) === 0;
    const served = index % Math.round(publicShape.packages / publicShape.services) === 0;
    mkdirSync(join(root, "tasks", category), { recursive: true });
    put(join(root, "tasks", category, `${id}.yaml`), taskText(id, category, skilled, served, chinese));
    mkdirSync(join(folder, "references"), { recursive: true });
    put(join(folder, "references", "eval_rule.md"), "# Rubric\n\n## 5. Checkpoints\n\n| CP1 | all | 1.00 |\n");
    if (index % Math.round(publicShape.packages / publicShape.privacy) === 0)
      put(join(folder, ".privacy"), "API_TOKEN\n");
    if (skilled) {
      mkdirSync(join(folder, "skills", "reader"), { recursive: true });
      put(join(folder, "skills", "reader", "SKILL.md"), "# Reader\n");
    }
    if (served) {
      mkdirSync(join(folder, "services", "setup"), { recursive: true });
      put(join(folder, "services", "setup", "run.sh"), "true\n");
    }
    for (let number = 0; number < perPackage; number++) {
      const below = join(folder, "sources", `part_${number % 5}`);
      if (number < 5) mkdirSync(below, { recursive: true });
      const note = number % 100 < noteShare;
      writeSized(join(below, `file_${number}.${note ? "txt" : "bin"}`), note ? 150 + ((number * 37) % 800) : weight);
      files++;
    }
  }
  return { packages, files };
}

/** A file of so many bytes, without writing most of them. */
function writeSized(path: string, bytes: number): void {
  const handle = openSync(path, "w");
  try {
    writeSync(handle, path.slice(-64));
    ftruncateSync(handle, bytes);
  } finally {
    closeSync(handle);
  }
}

function taskText(id: string, category: string, skilled: boolean, served: boolean, chinese: boolean): string {
  const sentence = chinese
    ? "  阅读随附的文件，找出其中的矛盾之处，并将结论写入结果文件夹，注明依据。\n"
    : "  Read the files that come with this, find what contradicts what, and write down your conclusion with its grounds.\n";
  return [
    `task_id: ${id}`,
    `category: ${category}`,
    "agent_sys: openclaw",
    "agent_id: main",
    "model: gpt-5.4",
    "timeout_seconds: 1200",
    "max_total_seconds: 1800",
    "success_threshold: 0.9",
    "",
    "recording: none",
    "headed: auto",
    `task: |\n${sentence.repeat(24)}`,
    "references:\n  - references/eval_rule.md",
    "sources:\n  - part_0/\n  - part_1/",
    ...(skilled ? ["skills:\n  - reader"] : []),
    ...(served ? ["services:\n  - name: setup\n    path: setup\n    start: bash run.sh\n    oneshot: true"] : []),
    "",
    "codex:\n  max_user_followups: 2",
    "",
  ].join("\n");
}
