import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  CompletionAssembler,
  EventSplitter,
  EventTooLong,
  eventData,
  maxEventBytes,
} from "../../../lib/executor/gateway/event-stream.ts";

describe("a byte stream of events", () => {
  it("is cut into the same events, however its pieces fall", () => {
    fc.assert(
      fc.property(
        fc.array(fc.string({ maxLength: 20 }).map((text) => text.replace(/[\r\n]/g, ""))),
        fc.constantFrom("\n", "\r\n", "\r"),
        fc.array(fc.integer({ min: 1, max: 9 }), { minLength: 1 }),
        (texts, newline, sizes) => {
          const bytes = Buffer.from(texts.map((text) => `data: ${text}${newline}${newline}`).join(""));
          const splitter = new EventSplitter();
          const events: Buffer[] = [];
          for (let at = 0, n = 0; at < bytes.length; n++) {
            const size = sizes[n % sizes.length] as number;
            events.push(...splitter.push(bytes.subarray(at, at + size)));
            at += size;
          }
          expect(events.map(eventData)).toEqual(texts);
          expect(Buffer.concat([...events, splitter.rest])).toEqual(bytes);
        },
      ),
    );
  });

  it("with an event that never ends is given up", () => {
    const splitter = new EventSplitter();
    const piece = Buffer.alloc(1024 ** 2, "x");
    expect(() => {
      for (let n = 0; n <= maxEventBytes / piece.length; n++) splitter.push(piece);
    }).toThrow(EventTooLong);
  });
});

describe("the data of an event", () => {
  it.each([
    ["data: a\n\n", "a"],
    ["data:a\n\n", "a"],
    ["event: x\ndata: a\ndata: b\nid: 1\n\n", "a\nb"],
    [": ping\n\n", null],
    ["data: {\r\n\r\n", "{"],
  ])("of %j is %j", (event, data) => {
    expect(eventData(Buffer.from(event))).toBe(data);
  });
});

describe("putting a completion together", () => {
  it("takes any JSON that a provider may send", () => {
    fc.assert(
      fc.property(fc.array(fc.dictionary(fc.constantFrom("choices", "usage", "id", "x"), fc.jsonValue())), (chunks) => {
        const assembler = new CompletionAssembler();
        for (const chunk of chunks) assembler.push(chunk);
        expect(() => JSON.stringify([assembler.completion(), assembler.text(), assembler.finished])).not.toThrow();
      }),
    );
  });

  it("is not led astray by choices and calls without number", () => {
    const assembler = new CompletionAssembler();
    for (let index = 0; index < 1000; index++) {
      assembler.push({ choices: [{ index, delta: { content: "x", ["f".repeat(index % 40)]: "y" } }] });
    }
    const { choices } = assembler.completion() as { choices: unknown[] };
    expect(choices).toHaveLength(128);
  });

  it("keeps the texts of a reasoning model apart", () => {
    const assembler = new CompletionAssembler();
    assembler.push({ choices: [{ index: 0, delta: { role: "assistant", reasoning_content: "hm" } }] });
    assembler.push({
      choices: [{ index: 0, delta: { reasoning_content: "m", content: "yes" }, finish_reason: "stop" }],
    });
    expect(assembler.finished).toBe(true);
    expect(assembler.completion()).toMatchObject({
      choices: [{ message: { role: "assistant", content: "yes", reasoning_content: "hmm" }, finish_reason: "stop" }],
    });
  });
});
