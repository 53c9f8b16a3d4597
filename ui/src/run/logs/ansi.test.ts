import { describe, expect, it } from "vitest";
import { parseAnsi, PLAIN } from "./ansi";

const ESC = "\x1b";
const plainText = (line: string) => parseAnsi(line).spans.map(({ text }) => text).join("");

describe("a log line", () => {
  it("without colors is one span", () => {
    expect(parseAnsi("epoch 1: loss 0.5").spans).toEqual([{ text: "epoch 1: loss 0.5", style: PLAIN }]);
    expect(parseAnsi("").spans).toEqual([]);
  });

  it("has colors until the reset", () => {
    const { spans, state } = parseAnsi(`${ESC}[1;31merror${ESC}[0m: it is ${ESC}[92mfine${ESC}[m`);
    expect(spans.map(({ text, style }) => [text, style.color, style.decorations])).toEqual([
      ["error", "1", ["bold"]],
      [": it is ", null, []],
      ["fine", "10", []],
    ]);
    expect(state).toBeNull();
  });

  it("continues the style of the previous line", () => {
    const first = parseAnsi(`${ESC}[4;33mwarning`);
    const second = parseAnsi(`still${ESC}[0m plain`, first.state);
    expect(second.spans.map(({ style }) => [style.color, style.decorations])).toEqual([["3", ["underline"]], [null, []]]);
    expect(second.state).toBeNull();
  });

  it("supports 256 colors and true color, also with colons", () => {
    const colors = (line: string) => parseAnsi(line).spans.map(({ style }) => style.color ?? style.background);
    expect(colors(`${ESC}[38;5;196mx`)).toEqual(["rgb(255, 0, 0)"]);
    expect(colors(`${ESC}[38;5;244mx`)).toEqual(["rgb(128, 128, 128)"]);
    expect(colors(`${ESC}[38;5;3mx`)).toEqual(["3"]);
    expect(colors(`${ESC}[48;2;1;2;255mx`)).toEqual(["rgb(1, 2, 255)"]);
    expect(colors(`${ESC}[38:2:16:32:48mx`)).toEqual(["rgb(16, 32, 48)"]);
    expect(colors(`${ESC}[38;2;999;0;0mx`)).toEqual([null]);
  });

  it("drops cursor movements, titles and incomplete sequences", () => {
    expect(plainText(`${ESC}[2K${ESC}[1Adone${ESC}]0;a title\x07!${ESC}[?25h${ESC}(B`)).toBe("done!");
    expect(plainText(`half${ESC}[3`)).toBe("half");
    expect(plainText("bell\x07 and null\x00")).toBe("bell and null");
  });

  it("shows the last state of a progress bar", () => {
    expect(plainText(" 10%|#   \r 50%|##  \r100%|####")).toBe("100%|####");
    expect(plainText("of windows\r")).toBe("of windows");
  });

  it("keeps markup as text", () => {
    expect(parseAnsi("<img src=x onerror=alert(1)>").spans[0]?.text).toBe("<img src=x onerror=alert(1)>");
  });
});
