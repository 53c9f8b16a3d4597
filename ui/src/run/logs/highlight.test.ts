import { expect, it } from "vitest";
import { PLAIN, type Span } from "./ansi";
import { marked } from "./highlight";

const spans = (...texts: string[]): Span[] => texts.map((text) => ({ text, look: PLAIN }));
const shown = (pieces: { text: string; hit: boolean }[]) =>
  pieces.map((piece) => (piece.hit ? `[${piece.text}]` : piece.text)).join("|");

it("every place is marked, whatever the case", () => {
  expect(shown(marked(spans("Loss loss closs"), "loss"))).toBe("[Loss]| |[loss]| c|[loss]");
});

it("a match over two colours is marked in both", () => {
  expect(shown(marked(spans("ab", "cd"), "bc"))).toBe("a|[b]|[c]|d");
});

it("without a mark nothing changes", () => {
  expect(shown(marked(spans("ab", "cd"), ""))).toBe("ab|cd");
  expect(shown(marked(spans("ab"), "x"))).toBe("ab");
});
