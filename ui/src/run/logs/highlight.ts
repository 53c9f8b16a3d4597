// Splits styled text at search matches, also where the style changes inside a match.

import type { Span, TextStyle } from "./ansi";

export interface Piece {
  text: string;
  style: TextStyle;
  isMatch: boolean;
}

export function highlight(spans: Span[], search: string): Piece[] {
  if (!search) return spans.map((span) => ({ ...span, isMatch: false }));
  const line = spans.map((span) => span.text).join("").toLowerCase();
  const text = search.toLowerCase();
  const edges: number[] = []; // start and end of each match
  for (let start = line.indexOf(text); start >= 0; start = line.indexOf(text, start + text.length)) {
    edges.push(start, start + text.length);
  }
  const pieces: Piece[] = [];
  let begin = 0;
  for (const { text, style } of spans) {
    const end = begin + text.length;
    let from = begin;
    for (const to of [...edges.filter((edge) => edge > begin && edge < end), end]) {
      const isMatch = edges.filter((edge) => edge <= from).length % 2 === 1;
      if (to > from) pieces.push({ text: text.slice(from - begin, to - begin), style, isMatch });
      from = to;
    }
    begin = end;
  }
  return pieces;
}
