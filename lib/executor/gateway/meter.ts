/**
 * An attempt's caps on dollars and tokens, for one turn: what is left, what calls in flight have set aside, and whether
 * the cap is reached. Once it is, it stays so: no later call is let through, however small.
 */
import { addUsage, costOf, noUsage, type Price, type Tokens, type Usage } from "../../attempt/usage.ts";
import type { InputEstimate } from "./estimate.ts";

/** What is left for the executor in this attempt; null: no cap of that kind. */
export interface Caps {
  usd: number | null;
  tokens: number | null;
}

export type Admission =
  /** `maxOutput`: what the call may ask for at most, and what is set aside for it; null: there is no cap and no wish. */
  | { kind: "admitted"; maxOutput: number | null; settle: (used: Tokens) => Usage }
  /** The cap is reached. */
  | { kind: "capped" }
  /** The calls in flight may use up what is left: ask again when one of them has ended. */
  | { kind: "wait" };

/** Output that is set aside for a call which names no maximum of its own, and to which it is then held. */
const usualOutput = 32_768;
/** Dollars are sums of floats. */
const epsilon = 1e-9;

export class Meter {
  readonly #caps: Caps;
  readonly #price: Price;
  #spent: Usage = noUsage;
  #reservedUsd = 0;
  #reservedTokens = 0;
  #inFlight = 0;
  #refused = false;

  constructor(caps: Caps, price: Price) {
    this.#caps = caps;
    this.#price = price;
  }

  get spent(): Usage {
    return this.#spent;
  }

  /** True when a call was refused for the cap, or what was spent has reached it. */
  get reached(): boolean {
    const { usd, tokens } = this.#caps;
    const usdReached = usd !== null && this.#spent.usd >= usd - epsilon;
    const tokensReached = tokens !== null && this.#spent.input + this.#spent.output >= tokens;
    return this.#refused || usdReached || tokensReached;
  }

  /**
   * Asks for one call.
   * @param wantedOutput the maximum that the request names, null if none
   * @param choices how many answers it asks for
   */
  admit(input: InputEstimate, wantedOutput: number | null, choices: number): Admission {
    const least = { input: input.least, cached: 0, output: choices };
    if (this.reached || !this.#fits(least, 0, 0)) {
      this.#refused = true;
      return { kind: "capped" };
    }
    if (!this.#fits(least, this.#reservedUsd, this.#reservedTokens)) return { kind: "wait" };

    const affordable = Math.floor(this.#affordableOutput(input.likely) / choices + epsilon);
    const capped = this.#caps.usd !== null || this.#caps.tokens !== null;
    const wish = wantedOutput ?? (capped ? usualOutput : null);
    // What others hold they will mostly give back: an answer that is cut for their sake would be worse than a wait.
    if (wish !== null && affordable < wish && this.#inFlight > 0) return { kind: "wait" };
    if (affordable < 1) {
      this.#refused = true;
      return { kind: "capped" };
    }
    const maxOutput = wish === null ? null : Math.min(wish, affordable);
    const reserved = { input: input.likely, cached: 0, output: (maxOutput ?? 0) * choices };
    const reservedUsd = costOf(reserved, this.#price);
    const reservedTokens = reserved.input + reserved.output;
    this.#inFlight++;
    this.#reservedUsd += reservedUsd;
    this.#reservedTokens += reservedTokens;
    return {
      kind: "admitted",
      maxOutput,
      settle: (used) => {
        const usage: Usage = { ...used, usd: costOf(used, this.#price) };
        this.#inFlight--;
        this.#reservedUsd -= reservedUsd;
        this.#reservedTokens -= reservedTokens;
        this.#spent = addUsage(this.#spent, usage);
        return usage;
      },
    };
  }

  #fits(least: Tokens, reservedUsd: number, reservedTokens: number): boolean {
    const { usd, tokens } = this.#caps;
    const usdAfter = this.#spent.usd + reservedUsd + costOf(least, this.#price);
    const tokensAfter = this.#spent.input + this.#spent.output + reservedTokens + least.input + least.output;
    return (usd === null || usdAfter <= usd + epsilon) && (tokens === null || tokensAfter <= tokens);
  }

  /** Output tokens that both caps still pay for after an input of that size. */
  #affordableOutput(input: number): number {
    const { usd, tokens } = this.#caps;
    const usdLeft =
      usd === null
        ? Number.POSITIVE_INFINITY
        : usd - this.#spent.usd - this.#reservedUsd - costOf({ input, cached: 0, output: 0 }, this.#price);
    const byUsd = this.#price.output > 0 ? (usdLeft * 1_000_000) / this.#price.output : Number.POSITIVE_INFINITY;
    const byTokens =
      tokens === null
        ? Number.POSITIVE_INFINITY
        : tokens - this.#spent.input - this.#spent.output - this.#reservedTokens - input;
    return Math.min(byUsd, byTokens);
  }
}
