/**
 * Weighted checkpoints and caps from a hidden eval_rule.md (UniClawBench: §5 and §6, wherever they are numbered), in the
 * styles that its rubrics have: tables, lists with the weight first, lists with it in brackets; caps in bullets and prose.
 */
import { type Block, blocksOf, plain, type Section, sectionsOf } from "./markdown-blocks.ts";

export interface RubricCheckpoint {
  /** The rubric's own (`CP1`), or `CP` and its place in the list. */
  id: string;
  /** 0 < weight <= 1; all of a rubric sum to 1 up to 0.005. */
  weight: number;
  text: string;
}

export interface RubricCap {
  /** `cap-1` and on, in the order of the text. */
  id: string;
  /** 0 <= max < 1: the highest score that is left. */
  max: number;
  /** The sentence or bullet that says when it applies. */
  text: string;
}

export type Rubric = { caps: RubricCap[] } & (
  | { checkpoints: RubricCheckpoint[]; reason: null }
  | { checkpoints: null; reason: string }
);

const sumTolerance = 0.005;

/** Never throws: a rubric without readable weights says why. */
export function parseRubric(markdown: string): Rubric {
  const sections = sectionsOf(markdown.slice(0, 1_000_000));
  const caps = capsOf(sections);
  let nearest: string | null = null;
  for (const section of checkpointSections(sections)) {
    const found = checkpointsOf(blocksOf(section.lines));
    if (found.checkpoints !== null) return { checkpoints: found.checkpoints, reason: null, caps };
    nearest ??= found.reason;
  }
  return { checkpoints: null, reason: nearest ?? "no section of weighted checkpoints", caps };
}

/** By title, the most telling words first; then by the numbers that the section usually has. */
function checkpointSections(sections: readonly Section[]): Section[] {
  const titles = [
    /check\s?points?|检查点|检查项|得分点|评分点/i,
    /rubric|weight|评分细则|评分标准|评分表|权重/i,
    /scor|grading|评分|打分|分值/i,
    /^\s*[456]\b/,
  ];
  const below = sections.filter((section) => section.level > 1);
  const ranked = titles.flatMap((title) => below.filter((section) => title.test(section.title)));
  return [...new Set([...ranked, ...sections.filter((section) => section.level <= 1)])];
}

interface Weighted {
  id: string | null;
  amount: number;
  unit: "none" | "percent" | "points";
  text: string;
}

/** Tries each table, all tables together, the list, the headings: the first whose weights sum to 1. */
function checkpointsOf(
  blocks: readonly Block[],
): { checkpoints: RubricCheckpoint[] } | { checkpoints: null; reason: string } {
  const tables = blocks.flatMap((block) => (block.kind === "table" ? [tableWeights(block)] : []));
  const items = blocks.flatMap((block) => (block.kind === "item" ? itemWeight(block.text) : []));
  const headings = blocks.flatMap((block) => (block.kind === "heading" ? headingWeight(block.text) : []));
  const candidates = [...tables, ...(tables.length > 1 ? [tables.flat()] : []), items, headings].filter(
    (list) => list.length > 0,
  );
  let reason: string | null = null;
  for (const candidate of candidates) {
    const scale = scaleOf(candidate);
    if (scale !== null) return { checkpoints: named(candidate, scale) };
    reason ??= `weights sum to ${round(candidate.reduce((total, { amount }) => total + amount, 0))}, not to 1`;
  }
  return { checkpoints: null, reason: reason ?? "no weights in the section of checkpoints" };
}

/** What the amounts are divided by: 1, 100 for percent, 100 or 10 for points; null where they sum to neither. */
function scaleOf(list: readonly Weighted[]): number | null {
  const total = list.reduce((sum, { amount }) => sum + amount, 0);
  const scales = list.some(({ unit }) => unit === "points") ? [1, 100, 10] : [1, 100];
  return scales.find((scale) => Math.abs(total / scale - 1) <= sumTolerance + 1e-9) ?? null;
}

function named(list: readonly Weighted[], scale: number): RubricCheckpoint[] {
  const taken = new Set<string>();
  return list.map(({ id, amount, text }, index) => {
    let own = id ?? `CP${index + 1}`;
    while (taken.has(own)) own = `${own}'`;
    taken.add(own);
    return { id: own, weight: round(amount / scale), text };
  });
}

const weightHeader = /\bweights?\b|\bpoints?\b|\bcredits?\b|\bscores?\b|权重|分值|占比|比重|分数/i;
const totalWord = /^(?:sub-?)?total|^sum\b|^合计|^总计|^总分/i;

function tableWeights({ header, rows }: Extract<Block, { kind: "table" }>): Weighted[] {
  const headers = header.map(plain);
  const columns = headers.map((_, column) => column);
  const weightColumn =
    columns.findLast((column) => weightHeader.test(headers[column]!)) ??
    columns.findLast((column) => rows.length > 0 && rows.every((row) => amountOf(row[column] ?? "") !== null));
  if (weightColumn === undefined) return [];
  return rows.flatMap((row): Weighted[] => {
    const amount = amountOf(row[weightColumn] ?? "");
    const cells = row.map(plain);
    if (amount === null || cells.some((cell) => totalWord.test(cell))) return [];
    const id = cells[0] !== undefined && weightColumn !== 0 ? idOf(cells[0]) : null;
    const unit = /%|percent|占比/i.test(headers[weightColumn]!) ? "percent" : amount.unit;
    const text = cells.filter((_, column) => column !== weightColumn && !(column === 0 && id !== null)).join(" — ");
    return [{ id, amount: amount.amount, unit, text }];
  });
}

const dash = "[-–—:：]";
/** `0.30`, `30%`, `30 points`, `30 分`: at most 100. */
const amountPattern = String.raw`(?<!\d)(\d{1,3}(?:\.\d+)?|\.\d+)\s*(%|percent\b|points?\b|pts?\b|分)?`;
const leadingAmount = new RegExp(String.raw`^[(\[（]?${amountPattern}[)\]）]?\s*(?=${dash}|\s|$)`, "i");
const bracketAmount = new RegExp(
  String.raw`[(\[（]\s*(?:weight|权重|满分)?\s*[:：=]?\s*${amountPattern}\s*[)\]）]`,
  "i",
);
const trailingAmount = new RegExp(String.raw`(?:weight|权重|${dash})\s*[:：=]?\s*${amountPattern}[.。]?$`, "i");
const leadingId = new RegExp(String.raw`^((?:CP|C|R|K|检查点)[-_ ]?\d{1,3}[a-z]?)\b\s*(?:${dash}|[.)、])?\s*`, "i");

function itemWeight(text: string): Weighted[] {
  const [first = ""] = text.split("\n");
  const whole = plain(text);
  if (totalWord.test(whole)) return [];
  const id = leadingId.exec(whole);
  const body = id ? whole.slice(id[0].length) : whole;
  const head = plain(first).slice(id?.[0].length ?? 0);
  // In brackets only where the item begins with an id: `(0.05 if …)` inside a sentence is partial credit, not a weight.
  const match =
    leadingAmount.exec(body) ??
    (id ? (bracketAmount.exec(body) ?? trailingAmount.exec(head)) : bracketAtEndOfTitle(text));
  if (match === null) return [];
  const amount = Number(match[1]);
  if (!(amount > 0 && amount <= 100)) return [];
  const rest = match.index === 0 ? body.slice(match[0].length).replace(new RegExp(`^\\s*${dash}+\\s*`), "") : body;
  return [{ id: id ? idOf(id[1]!) : null, amount, unit: unitOf(match[2]), text: rest }];
}

/** `### 5.1 (5%) Valid JSON`, `### CP1 Valid JSON (0.05)`. */
function headingWeight(title: string): Weighted[] {
  const whole = plain(title).replace(/^\d+(?:\.\d+)*[.)、]?\s+/, "");
  const id = leadingId.exec(whole);
  const body = id ? whole.slice(id[0].length) : whole;
  const match = bracketAmount.exec(body);
  const amount = Number(match?.[1]);
  if (match === null || !(amount > 0 && amount <= 100)) return [];
  const text = plain(body.replace(match[0], " "));
  return [{ id: id ? idOf(id[1]!) : null, amount, unit: unitOf(match[2]), text }];
}

/** `**Output shape (0.10).** …`: the weight closes the emphasised title. */
function bracketAtEndOfTitle(text: string): RegExpExecArray | null {
  const title = /^\*\*([^*]{1,200})\*\*/.exec(text)?.[1];
  if (title === undefined) return null;
  const match = bracketAmount.exec(plain(title));
  return match && match.index > 0 ? match : null;
}

function amountOf(cell: string): { amount: number; unit: Weighted["unit"] } | null {
  const match = new RegExp(`^${amountPattern}$`, "i").exec(plain(cell));
  const amount = Number(match?.[1]);
  return match && amount > 0 && amount <= 100 ? { amount, unit: unitOf(match[2]) } : null;
}

function unitOf(unit: string | undefined): Weighted["unit"] {
  if (unit === undefined) return "none";
  return unit === "%" || unit.toLowerCase() === "percent" ? "percent" : "points";
}

function idOf(cell: string): string | null {
  const bare = plain(cell).replace(/\s+/g, "");
  return /^[\p{L}\p{N}._-]{1,24}$/u.test(bare) ? bare : null;
}

/** Caps of all sections that speak of them, each text once. */
function capsOf(sections: readonly Section[]): RubricCap[] {
  const own = sections.filter(
    (section) => section.level > 1 && /\bcaps?\b|scoring|score|integrity|封顶|上限|评分|扣分/i.test(section.title),
  );
  const caps: RubricCap[] = [];
  const seen = new Set<string>();
  for (const section of own) {
    const onlyCaps = /\bcaps?\b|封顶|上限/i.test(section.title);
    for (const cap of blocksOf(section.lines).flatMap((block) => capsOfBlock(block, onlyCaps))) {
      if (seen.has(cap.text)) continue;
      seen.add(cap.text);
      caps.push({ id: `cap-${caps.length + 1}`, ...cap });
    }
  }
  return caps;
}

const fractionPattern = String.raw`(0?\.\d+|\d{1,2}\s?%)(?!\d)`;
/** "cap at 0.5", "capped at 0.5", "cap the final score at 0.5", "cap total at 0.5", "Cap 0.5", and in Chinese. */
const capPattern = new RegExp(
  String.raw`(?:\bcap(?:ped)?\b(?:\s+(?:the\s+)?(?:(?:final|total|overall|raw)\s+)?(?:score|total)?)?\s*(?:at|to|=|:|：)?|封顶(?:为|至|于|在)?|上限(?:为|是)?|最高(?:不超过|为|得)?|不(?:得)?超过|至多(?:为)?)\s*(?:<=|≤)?\s*${fractionPattern}`,
  "i",
);
/** In a list of caps the word is often left out: "0.30 — No deliverables", "No deliverables → 0.30". */
const bareCap = [
  new RegExp(String.raw`^${fractionPattern}\s*${dash}`),
  new RegExp(String.raw`(?:→|->|=>)\s*${fractionPattern}(?=[.;。；]|\s|$)`),
];

/** @param onlyCaps whether the section's title promises caps */
function capsOfBlock(block: Block, onlyCaps: boolean): Omit<RubricCap, "id">[] {
  switch (block.kind) {
    case "heading":
      return [];
    case "item": {
      const text = plain(block.text);
      const said = capOf(text);
      return said.length === 0 && onlyCaps ? bareCapOf(text) : said;
    }
    case "paragraph":
      return sentencesOf(plain(block.text)).flatMap((sentence) => capOf(sentence));
    case "table": {
      const column = block.header.findIndex((cell) => /\bcap\b|\bmax|封顶|上限|最高/i.test(cell));
      if (column < 0) return [];
      return block.rows.flatMap((row) => {
        const max = fraction(plain(row[column] ?? ""));
        const text = row
          .filter((_, index) => index !== column)
          .map(plain)
          .join(" — ");
        return max === null || text === "" ? [] : [{ max, text }];
      });
    }
  }
}

/** "If A, cap at 0.7. If B, cap at 0.5." in one bullet are two caps; one that is named and said again is one. */
function capOf(text: string): Omit<RubricCap, "id">[] {
  const capped = sentencesOf(text).flatMap((sentence) => capWith(capPattern.exec(sentence), sentence));
  const differ = new Set(capped.map(({ max }) => max)).size > 1;
  return differ || capped.length === 0 ? capped : [{ max: capped[0]!.max, text }];
}

function bareCapOf(text: string): Omit<RubricCap, "id">[] {
  return capWith(bareCap[0]!.exec(text) ?? bareCap[1]!.exec(text), text);
}

function capWith(match: RegExpExecArray | null, text: string): Omit<RubricCap, "id">[] {
  const max = fraction(match?.[1] ?? "");
  return max === null || max >= 1 ? [] : [{ max, text }];
}

function sentencesOf(text: string): string[] {
  return text.split(/(?<=[.;。；!！])\s+(?=[\p{Lu}\p{Lo}])|(?<=[。；！])/u);
}

function fraction(text: string): number | null {
  const match = /^(\d*\.?\d+)\s?(%?)$/.exec(text.trim());
  if (!match) return null;
  const value = Number(match[1]) / (match[2] === "%" ? 100 : 1);
  return value >= 0 && value <= 1 ? round(value) : null;
}

function round(value: number): number {
  return Math.round(value * 1e6) / 1e6;
}
