// Where a searched text is in a line, also when its colours change in the middle of it.

import type { Look, Span } from "./ansi";

export interface Piece {
  text: string;
  look: Look;
  hit: boolean;
}

export function marked(spans: Span[], mark: string): Piece[] {
  if (!mark) return spans.map((span) => ({ ...span, hit: false }));
  const line = spans.map((span) => span.text).join("").toLowerCase();
  const wanted = mark.toLowerCase();
  const edges: number[] = [];
  for (let at = line.indexOf(wanted); at >= 0; at = line.indexOf(wanted, at + wanted.length)) {
    edges.push(at, at + wanted.length);
  }
  const found: Piece[] = [];
  let begin = 0;
  for (const { text, look } of spans) {
    const end = begin + text.length;
    let from = begin;
    for (const edge of [...edges.filter((place) => place > begin && place < end), end]) {
      const inside = edges.filter((place) => place <= from).length % 2 === 1;
      if (edge > from) found.push({ text: text.slice(from - begin, edge - begin), look, hit: inside });
      from = edge;
    }
    begin = end;
  }
  return found;
}
