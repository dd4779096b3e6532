/**
 * Data of an execution: plain JSON, with its size known. State data is never changed in place, so values are shared
 * between states instead of copied, and a value that was measured once is not walked again.
 */
export type Json = null | boolean | number | string | Json[] | { [key: string]: Json };
export type JsonObject = { [key: string]: Json };

/** Step Functions' limits, hard ones. */
export const limits = {
  /** Input, output and payload of a state; one variable; one Assign. Bytes of JSON in UTF-8. */
  dataBytes: 256 * 1024,
  /** All variables of one execution. */
  variableBytes: 10 * 1024 * 1024,
  historyEvents: 25_000,
  /** Length of a state's, an execution's and a machine's name. */
  nameLength: 80,
  inlineMapConcurrency: 40,
  distributedMapConcurrency: 10_000,
  tokenLength: 2048,
  /** Seconds of a Wait, a timeout, a heartbeat. */
  seconds: 99_999_999,
} as const;

/** Error names that the language itself gives. */
export const errorNames = {
  all: "States.ALL",
  runtime: "States.Runtime",
  timeout: "States.Timeout",
  heartbeatTimeout: "States.HeartbeatTimeout",
  taskFailed: "States.TaskFailed",
  dataLimit: "States.DataLimitExceeded",
  query: "States.QueryEvaluationError",
  noChoice: "States.NoChoiceMatched",
  itemReader: "States.ItemReaderFailed",
  resultWriter: "States.ResultWriterFailed",
  tolerance: "States.ExceedToleratedFailureThreshold",
  exists: "StepFunctions.ExecutionAlreadyExistsException",
  invalidName: "StepFunctions.InvalidNameException",
  noMachine: "StepFunctions.StateMachineDoesNotExistException",
  invalidInput: "StepFunctions.InvalidExecutionInputException",
} as const;

/** A state that failed, by the error's name in the States Language and its cause. Retry and Catch look at it. */
export class StateFailure extends Error {
  override readonly name = "StateFailure";
  constructor(
    readonly error: string,
    readonly reason: string,
  ) {
    super(`${error}: ${reason}`);
  }
}

/** Bytes of objects and arrays that were walked and found plain. */
const measured = new WeakMap<object, number>();

/**
 * Makes plain JSON of what an expression gave, and measures it. Arrays of JSONata carry marks and may be shared with
 * its inside, so they are copied; what came from earlier states is shared.
 * @returns the value and the bytes of its JSON text in UTF-8
 * @throws StateFailure States.QueryEvaluationError for what is not JSON: undefined, functions, NaN
 */
export function plain(value: unknown, what: string): { value: Json; bytes: number } {
  switch (typeof value) {
    case "string":
      return { value, bytes: stringBytes(value) };
    case "boolean":
      return { value, bytes: value ? 4 : 5 };
    case "number":
      if (Number.isFinite(value)) return { value, bytes: String(value).length };
      break;
    case "object": {
      if (value === null) return { value, bytes: 4 };
      const known = measured.get(value);
      if (known !== undefined) return { value: value as Json, bytes: known };
      return Array.isArray(value) ? plainArray(value, what) : plainObject(value, what);
    }
    default:
  }
  const found = value === undefined ? "nothing (undefined)" : typeof value === "number" ? String(value) : typeof value;
  throw new StateFailure(errorNames.query, `${what} gave ${found}; expected a JSON value`);
}

function plainArray(value: unknown[], what: string): { value: Json; bytes: number } {
  const copy: Json[] = [];
  let bytes = 2 + Math.max(0, value.length - 1);
  for (const item of value) {
    const part = plain(item, what);
    copy.push(part.value);
    bytes += part.bytes;
  }
  measured.set(copy, bytes);
  return { value: copy, bytes };
}

function plainObject(value: object, what: string): { value: Json; bytes: number } {
  if ("_jsonata_lambda" in value || "_jsonata_function" in value) return plain(() => value, what);
  const copy: JsonObject = {};
  let bytes = 2;
  let count = 0;
  for (const [key, item] of Object.entries(value)) {
    const part = plain(item, what);
    if (key === "__proto__") Object.defineProperty(copy, key, { value: part.value, enumerable: true });
    else copy[key] = part.value;
    bytes += stringBytes(key) + 1 + part.bytes;
    count += 1;
  }
  bytes += Math.max(0, count - 1);
  measured.set(copy, bytes);
  return { value: copy, bytes };
}

/** Characters that JSON escapes or that take more than one byte of UTF-8. */
const notPlain = /[^ !#-[\]-~]/;
function stringBytes(text: string): number {
  return notPlain.test(text) ? Buffer.byteLength(JSON.stringify(text)) : text.length + 2;
}

/**
 * Takes data from outside (a function's answer, an execution's input) as its JSON text would give it.
 * @throws TypeError what has no JSON text at all, such as a cycle
 */
export function fromOutside(value: unknown): { value: Json; bytes: number } {
  const text = JSON.stringify(value);
  if (text === undefined) return { value: null, bytes: 4 };
  const copy = JSON.parse(text) as Json;
  const bytes = Buffer.byteLength(text);
  if (typeof copy === "object" && copy !== null) measured.set(copy, bytes);
  return { value: copy, bytes };
}

/** @throws StateFailure States.DataLimitExceeded when data is over 256 KiB */
export function withinLimit(data: { value: Json; bytes: number }, what: string): Json {
  if (data.bytes > limits.dataBytes) {
    throw new StateFailure(
      errorNames.dataLimit,
      `${what} is ${data.bytes} bytes of JSON; at most ${limits.dataBytes} are allowed`,
    );
  }
  return data.value;
}

export function isObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Brackets, wildcards and special characters that names of executions, machines and Map Runs must not hold. */
const forbiddenInName = '<>{}[]?*"#%\\^|~`$&,;:/';

/** What is wrong with a name, or null. */
export function nameProblem(name: string): string | null {
  if (name.length < 1 || name.length > limits.nameLength) {
    return `has ${name.length} characters; expected 1 to ${limits.nameLength}`;
  }
  for (const character of name) {
    const code = character.codePointAt(0) as number;
    const control = code <= 0x1f || (code >= 0x7f && code <= 0x9f);
    const outside = code === 0xfffe || code === 0xffff || (code >= 0xd800 && code <= 0xdfff);
    if (control || outside || forbiddenInName.includes(character) || /\s/.test(character)) {
      return `holds ${JSON.stringify(character)}; spaces, control characters and ${forbiddenInName} are not allowed`;
    }
  }
  return null;
}
