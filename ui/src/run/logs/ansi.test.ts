import { describe, expect, it } from "vitest";
import { PLAIN, plainText, spansOf } from "./ansi";

const ESC = "\x1b";

describe("a line of a log", () => {
  it("without colours is one span", () => {
    expect(spansOf("epoch 1: loss 0.5").spans).toEqual([{ text: "epoch 1: loss 0.5", look: PLAIN }]);
    expect(spansOf("").spans).toEqual([]);
  });

  it("has its colours, and loses them at the reset", () => {
    const { spans, look } = spansOf(`${ESC}[1;31merror${ESC}[0m: it is ${ESC}[92mfine${ESC}[m`);
    expect(spans.map((span) => [span.text, span.look.colour, span.look.bold])).toEqual([
      ["error", "1", true],
      [": it is ", null, false],
      ["fine", "10", false],
    ]);
    expect(look).toBe(PLAIN);
  });

  it("hands an open colour on to the next line", () => {
    const first = spansOf(`${ESC}[33mwarning`);
    expect(spansOf("still", first.look).spans[0]?.look.colour).toBe("3");
  });

  it("knows the 256 colours and true colour, also with colons", () => {
    const colours = (line: string) => spansOf(line).spans.map((span) => span.look.colour ?? span.look.ground);
    expect(colours(`${ESC}[38;5;196mx`)).toEqual(["#ff0000"]);
    expect(colours(`${ESC}[38;5;244mx`)).toEqual(["#808080"]);
    expect(colours(`${ESC}[38;5;3mx`)).toEqual(["3"]);
    expect(colours(`${ESC}[48;2;1;2;255mx`)).toEqual(["#0102ff"]);
    expect(colours(`${ESC}[38:2:16:32:48mx`)).toEqual(["#102030"]);
    expect(colours(`${ESC}[38;2;999;0;0mx`)).toEqual([null]);
  });

  it("does not show what moves cursors, sets titles, or was cut off", () => {
    expect(plainText(`${ESC}[2K${ESC}[1Adone${ESC}]0;a title\x07!${ESC}[?25h${ESC}(B`)).toBe("done!");
    expect(plainText(`half${ESC}[3`)).toBe("half");
    expect(plainText("bell\x07 and null\x00")).toBe("bell and null");
  });

  it("written over by a progress bar shows what was written last", () => {
    expect(plainText(" 10%|#   \r 50%|##  \r100%|####")).toBe("100%|####");
    expect(plainText("of windows\r")).toBe("of windows");
  });

  it("of markup stays text", () => {
    expect(spansOf("<img src=x onerror=alert(1)>").spans[0]?.text).toBe("<img src=x onerror=alert(1)>");
  });
});
