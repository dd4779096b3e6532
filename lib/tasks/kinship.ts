/** What a task's category and id say about it: capability, language, and which tasks are one task in two languages. */
import type { Language } from "../attempt/vocabulary.ts";

/** Category without its number and language: `202_exploration_zh` is `exploration`. */
export function capabilityOf(category: string): string {
  return category.replace(/^\d+_/, "").replace(/_zh$/, "") || category;
}

const cjk = /[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]/gu;

/**
 * Categories from 200 are Chinese and those from 100 English, as UniClawBench numbers them; elsewhere the request decides:
 * it is Chinese when it has more CJK characters than Latin words (an English request may quote a label of a figure).
 */
export function languageOf(category: string, request: string): Language {
  if (/^2\d\d(_|$)/.test(category) || category.endsWith("_zh")) return "zh";
  if (/^1\d\d(_|$)/.test(category)) return "en";
  const characters = request.match(cjk)?.length ?? 0;
  const words = request.match(/[A-Za-z]{2,}/g)?.length ?? 0;
  return characters > words ? "zh" : "en";
}

const numbered = /^(task_)([12])(0[1-5]_\d+_.+)$/;

/** Id of the task that UniClawBench's numbering pairs with this one: 10x_NN and 20x_NN of the same name. */
export function counterpart(taskId: string): string | null {
  const match = numbered.exec(taskId);
  return match ? `${match[1]}${match[2] === "1" ? "2" : "1"}${match[3]}` : null;
}

/** The name of a pair by numbering is its English id, whether or not both halves are there. */
function pairName(taskId: string): string {
  return taskId.replace(numbered, "$11$3");
}

/**
 * Cluster of each task: tasks whose results belong together in the statistics share its name. A task joins its `twin`,
 * else its counterpart by numbering. The name depends on the ids alone, so a sweep over one half of a pair names it the same.
 */
export function clustersOf(tasks: readonly { id: string; twin: string | null }[]): Map<string, string> {
  const twins = new Map(tasks.map(({ id, twin }) => [id, twin]));
  return new Map(
    tasks.map(({ id }) => {
      const seen = [id];
      let at = id;
      for (;;) {
        const next = twins.get(at) ?? null;
        if (next === null) return [id, pairName(at)];
        const back = seen.indexOf(next);
        // Tasks that name each other: any of them has to give the same name.
        if (back >= 0) return [id, seen.slice(back).map(pairName).sort()[0] ?? id];
        seen.push(next);
        at = next;
      }
    }),
  );
}
