/** The little of Markdown that rubrics use: sections by heading, top-level list items, tables, paragraphs. Never throws. */

export interface Section {
  /** Depth of its heading, 1 to 6; 0 for what stands before the first heading. */
  level: number;
  title: string;
  /** Its lines, those of its subsections included. */
  lines: string[];
}

export type Block =
  | { kind: "heading"; text: string }
  | { kind: "item"; text: string }
  | { kind: "table"; header: string[]; rows: string[][] }
  | { kind: "paragraph"; text: string };

/** All sections in order; a subsection is one of its own and part of those above it. */
export function sectionsOf(markdown: string): Section[] {
  const open: Section[] = [{ level: 0, title: "", lines: [] }];
  const all = [...open];
  let fence: string | null = null;
  for (const line of markdown.split(/\r\n|\r|\n/)) {
    fence = fenceAfter(fence, line);
    const heading = fence === null ? /^ {0,3}(#{1,6})\s+(.*?)[\s#]*$/.exec(line) : null;
    if (heading) {
      const level = heading[1]!.length;
      while (open.length > 0 && open.at(-1)!.level >= level) open.pop();
      // Text before any heading is nobody's parent.
      if (open.at(-1)?.level === 0) open.pop();
      for (const parent of open) parent.lines.push(line);
      const section = { level, title: heading[2]!, lines: [] };
      open.push(section);
      all.push(section);
    } else {
      for (const section of open) section.lines.push(line);
    }
  }
  return all;
}

/** Items keep the text of what is nested in them. Code ends a block and is left out. */
export function blocksOf(lines: readonly string[]): Block[] {
  const blocks: Block[] = [];
  let indent = 0;
  let fence: string | null = null;
  let closed = true;
  for (const line of lines) {
    const wasFenced = fence !== null;
    fence = fenceAfter(fence, line);
    if (wasFenced || fence !== null) {
      closed = true;
      continue;
    }
    const heading = /^ {0,3}#{1,6}\s+(.*?)[\s#]*$/.exec(line);
    if (heading) {
      blocks.push({ kind: "heading", text: heading[1]! });
      closed = true;
      continue;
    }
    if (line.trim() === "") {
      // An item goes on after an empty line where what follows is indented.
      if (blocks.at(-1)?.kind !== "item") closed = true;
      else indent = Math.max(indent, 1);
      continue;
    }
    const depth = /^\s*/.exec(line)![0].replace(/\t/g, "    ").length;
    const current = closed ? undefined : blocks.at(-1);
    const bullet = /^\s*(?:[-*+•]|\d{1,3}[.)、])\s+(.*)$/.exec(line);
    if (bullet && (current?.kind !== "item" || depth < 2)) {
      blocks.push({ kind: "item", text: bullet[1]! });
      indent = 0;
      closed = false;
    } else if (line.trim().startsWith("|")) {
      const cells = cellsOf(line);
      if (current?.kind !== "table") blocks.push({ kind: "table", header: cells, rows: [] });
      else if (!cells.every((cell) => /^:?-*:?$/.test(cell))) current.rows.push(cells);
      closed = false;
    } else if (current?.kind === "item" && depth >= indent) {
      current.text += `\n${bullet ? `- ${bullet[1]}` : line.trim()}`;
    } else if (current?.kind === "paragraph") {
      current.text += `\n${line.trim()}`;
    } else {
      blocks.push({ kind: "paragraph", text: line.trim() });
      closed = false;
    }
  }
  return blocks;
}

/** Text on one line, without emphasis and code marks. */
export function plain(text: string): string {
  return text
    .replace(/\*\*|__|`/g, "")
    .replace(/\s+/g, " ")
    .trim();
}

function fenceAfter(fence: string | null, line: string): string | null {
  const mark = /^ {0,3}(`{3,}|~{3,})/.exec(line)?.[1];
  if (mark === undefined) return fence;
  if (fence === null) return mark;
  return mark.startsWith(fence) ? null : fence;
}

function cellsOf(line: string): string[] {
  return line
    .trim()
    .replace(/^\||(?<!\\)\|$/g, "")
    .split(/(?<!\\)\|/)
    .map((cell) => cell.trim());
}
