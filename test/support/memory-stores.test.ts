/** The stores that tests use keep the contract that every adapter keeps, so a test on them is worth as much. */
import { objectStoreContract } from "../platform/contract/object-store.ts";
import { scoreTableContract } from "../platform/contract/score-table.ts";
import { MemoryObjects } from "./memory-objects.ts";
import { MemoryScores } from "./memory-scores.ts";

objectStoreContract("memory", async () => {
  const objects = new MemoryObjects();
  return { as: (identity) => objects.as(identity), close: async () => {} };
});

scoreTableContract("memory", async () => {
  const scores = new MemoryScores();
  return { connect: async () => scores, close: async () => {} };
});
