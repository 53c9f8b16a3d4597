import { expect, it } from "vitest";
import { PLAIN, type Span } from "./ansi";
import { highlight } from "./highlight";

const spans = (...texts: string[]): Span[] => texts.map((text) => ({ text, style: PLAIN }));
const format = (pieces: { text: string; isMatch: boolean }[]) =>
  pieces.map(({ text, isMatch }) => (isMatch ? `[${text}]` : text)).join("|");

it("marks every match, ignoring case", () => {
  expect(format(highlight(spans("Loss loss closs"), "loss"))).toBe("[Loss]| |[loss]| c|[loss]");
});

it("marks a match that spans two colors", () => {
  expect(format(highlight(spans("ab", "cd"), "bc"))).toBe("a|[b]|[c]|d");
});

it("changes nothing without a match", () => {
  expect(format(highlight(spans("ab", "cd"), ""))).toBe("ab|cd");
  expect(format(highlight(spans("ab"), "x"))).toBe("ab");
});
