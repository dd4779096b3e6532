/**
 * Functions that checks have beside JSONata's own, where its way with nested lists would make a grid unreadable. A grid
 * is a list of rows, each a list of cells: numbers, strings, or null for an empty cell. Each gives nothing, or false,
 * for what is no grid, and never fails.
 */

export type Cell = string | number | boolean | null;
export type Grid = readonly (readonly Cell[])[];

/** Marks that people write into an empty cell. */
const emptyMarks = new Set(["", ".", "_", "?", "*", "-"]);

export const expressionFunctions: Readonly<Record<string, (...passed: unknown[]) => unknown>> = {
  /** $toGrid(json): a list of lists as a grid: numbers in quotes become numbers, marks of empty cells and 0 null. */
  toGrid: (value) => {
    if (!Array.isArray(value) || !value.every((row) => Array.isArray(row))) return undefined;
    return value.map((row) => (row as unknown[]).map(toCell));
  },
  /** $isGrid(grid, rows, columns): whether it has exactly this shape, whatever its cells are. */
  isGrid: (grid, rows, columns) => isGrid(grid) && grid.length === rows && grid.every((row) => row.length === columns),
  rows: (grid) => (isGrid(grid) ? grid : undefined),
  /** $columns(grid): its columns as lists; nothing where rows differ in length. */
  columns: (grid) => (isEven(grid) ? (grid[0] ?? []).map((_, at) => grid.map((row) => row[at])) : undefined),
  /** $boxes(grid, height, width): its boxes as lists, from left to right and top to bottom; nothing where they do not fit. */
  boxes: (grid, height, width) => {
    if (!isEven(grid) || typeof height !== "number" || typeof width !== "number") return undefined;
    const columns = grid[0]?.length ?? 0;
    if (!(height >= 1 && width >= 1) || grid.length % height !== 0 || columns % width !== 0) return undefined;
    const boxes: unknown[][] = [];
    for (let top = 0; top < grid.length; top += height) {
      for (let left = 0; left < columns; left += width) {
        boxes.push(grid.slice(top, top + height).flatMap((row) => row.slice(left, left + width)));
      }
    }
    return boxes;
  },
  /** $isPermutation(list, n): whether the list is 1 to n, each once. */
  isPermutation: (list, n) => {
    if (!Array.isArray(list) || typeof n !== "number" || list.length !== n) return false;
    return new Set(list).size === list.length && list.every((cell) => isWithin(cell, n));
  },
  /** $isFilled(grid, n): whether every cell is a whole number from 1 to n. */
  isFilled: (grid, n) =>
    isGrid(grid) && typeof n === "number" && grid.every((row) => row.every((cell) => isWithin(cell, n))),
  /** $hasEmptyCell(grid): whether nothing is filled into some cell. */
  hasEmptyCell: (grid) => isGrid(grid) && grid.some((row) => row.some((cell) => cell === null)),
  /** $keepsGivens(grid, givens): whether both have one shape, and each cell that is not empty in givens is the same. */
  keepsGivens: (grid, givens) =>
    isGrid(grid) &&
    isGrid(givens) &&
    grid.length === givens.length &&
    givens.every(
      (row, y) => row.length === grid[y]?.length && row.every((given, x) => given === null || given === grid[y]?.[x]),
    ),
  /** $fraction(list): which part of it is true; nothing of an empty list. */
  fraction: (list) => {
    const each = Array.isArray(list) ? list : list === undefined ? [] : [list];
    return each.length === 0 ? undefined : each.filter((item) => item === true).length / each.length;
  },
};

function isWithin(cell: unknown, n: number): boolean {
  return typeof cell === "number" && Number.isInteger(cell) && cell >= 1 && cell <= n;
}

function toCell(cell: unknown): Cell {
  if (cell === 0 || cell === null || cell === undefined) return null;
  if (typeof cell === "number" || typeof cell === "boolean") return cell;
  if (typeof cell !== "string") return "a list or object";
  return cellOf(cell.trim());
}

/** A cell as it was written: 0 and the marks of empty cells are null. */
export function cellOf(text: string): Cell {
  if (emptyMarks.has(text) || text === "0") return null;
  return /^-?\d{1,15}$/.test(text) ? Number(text) : text;
}

function isGrid(value: unknown): value is Grid {
  return Array.isArray(value) && value.length > 0 && value.every((row) => Array.isArray(row));
}

function isEven(value: unknown): value is Grid {
  return isGrid(value) && value.every((row) => row.length === value[0]?.length);
}
