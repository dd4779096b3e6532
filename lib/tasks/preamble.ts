/**
 * What an agent is told before the request: where it works, where results go, how to end. In a file of its own, because
 * its hash stands in every report: a word changed here changes what was measured.
 */
import type { Language } from "../attempt/vocabulary.ts";
import { canonicalJson, sha256Hex } from "./canonical.ts";

/** `{skills}` becomes `skills`, with its `{list}` filled in, or `noSkills`. */
export const preambles: Readonly<
  Record<Language, { text: string; skills: string; noSkills: string; separator: string }>
> = {
  en: {
    text: [
      "You work alone on a Linux machine, and a request from its user follows below.",
      "",
      "- Your workspace is `/tmp_workspace`. Files that come with the request are in `/tmp_workspace/clawbench/sources/`.",
      "- Everything that you deliver goes into `/tmp_workspace/results/`; nothing outside that folder is looked at.",
      "- Save evidence as you go: when you rely on something that you saw, keep it there too, as a screenshot, a saved page or a note.",
      "- The screen, where there is one, has 1440x900 pixels.",
      "- {skills}",
      "- When you are done, end with a plain message to the user that says what you did and where it is.",
      "",
      "The request:",
      "",
      "",
    ].join("\n"),
    skills: "These skills are installed; read a skill's `SKILL.md` before you use it: {list}",
    noSkills: "No skills are installed for this request.",
    separator: ", ",
  },
  zh: {
    text: [
      "你在一台 Linux 机器上独立工作，用户的请求见下文。",
      "",
      "- 工作区是 `/tmp_workspace`。随请求附带的文件位于 `/tmp_workspace/clawbench/sources/`。",
      "- 所有交付成果都放入 `/tmp_workspace/results/`；该文件夹之外的内容不会被查看。",
      "- 边做边保存证据：凡是你所依据的所见内容，也请以截图、网页存档或笔记的形式存入该文件夹。",
      "- 如有屏幕，其分辨率为 1440x900。",
      "- {skills}",
      "- 完成后，请用一条普通消息向用户说明你做了什么、成果在哪里，并以此结束。",
      "",
      "请求如下：",
      "",
      "",
    ].join("\n"),
    skills: "已安装以下技能；使用前请先阅读该技能的 `SKILL.md`：{list}",
    noSkills: "本次请求没有安装技能。",
    separator: "、",
  },
};

/** Hash of everything above, for reports. */
export const preambleHash = sha256Hex(canonicalJson(preambles));
