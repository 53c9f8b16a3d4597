// A log of any size, of which only some pieces are loaded. Lines are identified by their byte offset.

import { parseAnsi, type SgrState, type Span } from "./ansi";

export const PIECE_BYTES = 64 * 1024;
const MAX_PIECES = 96; // 6 MB
const MAX_LINE_CHARS = 4000; // characters per line
const NEWLINE = 10;

export interface LogLine {
  offset: number; // of its first byte; stable while the log only grows
  number: number | null; // from 1; null if earlier pieces are not loaded
  spans: Span[];
  cut: number; // number of bytes that are not shown
}

interface Piece {
  bytes: Uint8Array;
  lineEnds: Uint32Array; // positions of its newlines
  styles: Map<number, SgrState>; // the style that a line starts with
}

export class LogDocument {
  size = 0;
  #pieces = new Map<number, Piece>();
  #linesBefore = new Map([[0, 0]]); // number of lines in all earlier pieces, where known

  /** Sets the size of the log. A log that shrank was replaced: its pieces are dropped. */
  grow(size: number): void {
    if (size < this.size) {
      this.#pieces.clear();
      this.#linesBefore = new Map([[0, 0]]);
    }
    this.size = size;
  }

  /** Stores loaded bytes. */
  put(offset: number, bytes: Uint8Array): void {
    this.size = Math.max(this.size, offset + bytes.length);
    let at = 0;
    while (at < bytes.length) {
      const number = Math.floor((offset + at) / PIECE_BYTES);
      const inside = offset + at - number * PIECE_BYTES;
      const part = bytes.subarray(at, at + PIECE_BYTES - inside);
      const piece = this.#pieces.get(number);
      const before = piece?.bytes.length ?? 0;
      if (inside <= before && inside + part.length > before) {
        const extended = new Uint8Array(inside + part.length);
        if (piece) extended.set(piece.bytes.subarray(0, inside));
        extended.set(part, inside);
        this.#store(number, extended);
      }
      at += part.length;
    }
  }

  /** The missing byte ranges between `from` and `to`, as [offset, length] in order. */
  missing(from: number, to: number): [number, number][] {
    const ranges: [number, number][] = [];
    const last = Math.floor(Math.max(from, Math.min(to, this.size) - 1) / PIECE_BYTES);
    for (let number = Math.max(0, Math.floor(from / PIECE_BYTES)); number <= last; number++) {
      const begin = number * PIECE_BYTES + (this.#pieces.get(number)?.bytes.length ?? 0);
      const end = Math.min((number + 1) * PIECE_BYTES, this.size);
      const previous = ranges[ranges.length - 1];
      if (begin >= end) continue;
      if (previous && previous[0] + previous[1] === begin) previous[1] += end - begin;
      else ranges.push([begin, end - begin]);
    }
    return ranges;
  }

  /** The start of the line that contains `offset`; null if it is not loaded. */
  lineStart(offset: number): number | null {
    const at = Math.max(0, Math.min(offset, this.size - 1));
    const number = Math.floor(at / PIECE_BYTES);
    const piece = this.#pieces.get(number);
    if (!piece) return null;
    const base = number * PIECE_BYTES;
    const ended = countBelow(piece.lineEnds, at - base);
    if (ended > 0) return base + piece.lineEnds[ended - 1]! + 1;
    if (number === 0) return 0;
    const before = this.#pieces.get(number - 1);
    if (!before || before.bytes.length < PIECE_BYTES) return null;
    const last = before.lineEnds[before.lineEnds.length - 1];
    // a line longer than a piece is split there: its start may be gigabytes away
    return last === undefined ? base : base - PIECE_BYTES + last + 1;
  }

  /** The start of the line after the one at `start`; null at the end or if it is not loaded. */
  nextLine(start: number): number | null {
    const end = this.#lineEnd(start);
    return end === null || end.next >= this.size ? null : end.next;
  }

  previousLine(start: number): number | null {
    return start <= 0 ? null : this.lineStart(start - 1);
  }

  /** Moves by `lines` down (up if negative), as far as the loaded pieces reach. */
  move(start: number, lines: number): { start: number; moved: number } {
    let at = start;
    let moved = 0;
    while (moved < lines) {
      const next = this.nextLine(at);
      if (next === null) break;
      at = next;
      moved++;
    }
    while (moved > lines) {
      const before = this.previousLine(at);
      if (before === null) break;
      at = before;
      moved--;
    }
    return { start: at, moved };
  }

  /** Up to `count` lines starting at `start`. */
  lines(start: number, count: number): LogLine[] {
    const result: LogLine[] = [];
    let number = this.#numberOf(start);
    for (let at: number | null = start; at !== null && result.length < count; at = this.nextLine(at)) {
      const end = this.#lineEnd(at);
      if (end === null || (end.end === at && at >= this.size)) break;
      result.push(this.#line(at, end.end, number));
      if (number !== null) number++;
    }
    return result;
  }

  /** Sets the number of a line, as reported by a search; numbers of the lines around it follow from it. */
  setLineNumber(start: number, number: number): void {
    const at = Math.floor(start / PIECE_BYTES);
    const piece = this.#pieces.get(at);
    if (!piece) return;
    this.#linesBefore.set(at, number - 1 - countBelow(piece.lineEnds, start - at * PIECE_BYTES));
    this.#countLines(at);
    for (let before = at - 1; this.#pieces.get(before)?.bytes.length === PIECE_BYTES; before--) {
      const lines = Math.max(this.#pieces.get(before)!.lineEnds.length, 1);
      this.#linesBefore.set(before, this.#linesBefore.get(before + 1)! - lines);
    }
  }

  /** The start of the line with this number; null if it is not known. */
  startOfLine(number: number): number | null {
    let piece = 0;
    while ((this.#linesBefore.get(piece + 1) ?? Infinity) < number) piece++;
    const ends = this.#pieces.get(piece)?.lineEnds;
    if (!ends) return null;
    const inside = number - 1 - this.#linesBefore.get(piece)!;
    if (inside > 0) return inside <= ends.length ? piece * PIECE_BYTES + ends[inside - 1]! + 1 : null;
    return piece === 0 ? 0 : this.lineStart(piece * PIECE_BYTES);
  }

  /** The number of lines; null until all bytes are loaded. */
  lineCount(): number | null {
    const last = Math.floor(Math.max(0, this.size - 1) / PIECE_BYTES);
    const before = this.#linesBefore.get(last);
    const piece = this.#pieces.get(last);
    if (before === undefined || !piece || !this.size) return this.size ? null : 0;
    const unterminated = piece.bytes[piece.bytes.length - 1] === NEWLINE ? 0 : 1;
    return before + piece.lineEnds.length + unterminated;
  }

  /** Average bytes per line of the loaded pieces, to estimate the height of the log. */
  averageLineBytes(): number {
    let bytes = 0;
    let lines = 0;
    for (const piece of this.#pieces.values()) {
      bytes += piece.bytes.length;
      lines += piece.lineEnds.length;
    }
    return lines ? bytes / lines : 80;
  }

  /** True if all bytes are loaded, so that all lines have a number. */
  get complete(): boolean {
    return this.missing(0, this.size).length === 0;
  }

  #store(number: number, bytes: Uint8Array): void {
    const ends: number[] = [];
    for (let at = bytes.indexOf(NEWLINE); at >= 0; at = bytes.indexOf(NEWLINE, at + 1)) ends.push(at);
    this.#pieces.delete(number); // reinserted, so that the first key is the least recently stored piece
    this.#pieces.set(number, { bytes, lineEnds: Uint32Array.from(ends), styles: new Map() });
    this.#countLines(number);
    for (const oldest of this.#pieces.keys()) {
      if (this.#pieces.size <= MAX_PIECES) break;
      this.#pieces.delete(oldest);
    }
  }

  #countLines(from: number): void {
    for (let number = from; ; number++) {
      const before = this.#linesBefore.get(number);
      const piece = this.#pieces.get(number);
      if (before === undefined || !piece || piece.bytes.length < PIECE_BYTES) return;
      this.#linesBefore.set(number + 1, before + Math.max(piece.lineEnds.length, 1));
    }
  }

  #numberOf(start: number): number | null {
    const piece = Math.floor(start / PIECE_BYTES);
    const before = this.#linesBefore.get(piece);
    const ends = this.#pieces.get(piece)?.lineEnds;
    if (before === undefined || !ends) return null;
    return before + countBelow(ends, start - piece * PIECE_BYTES) + 1;
  }

  #lineEnd(start: number): { end: number; next: number } | null {
    const number = Math.floor(start / PIECE_BYTES);
    const piece = this.#pieces.get(number);
    if (!piece || start - number * PIECE_BYTES > piece.bytes.length) return null;
    const base = number * PIECE_BYTES;
    const lineEnd = piece.lineEnds[countBelow(piece.lineEnds, start - base)];
    if (lineEnd !== undefined) return { end: base + lineEnd, next: base + lineEnd + 1 };
    const border = base + PIECE_BYTES;
    if (border >= this.size) return { end: this.size, next: this.size };
    if (piece.bytes.length < PIECE_BYTES) return null;
    if (!piece.lineEnds.length) return { end: border, next: border };
    const after = this.#pieces.get(number + 1);
    if (!after) return null;
    const first = after.lineEnds[0];
    const end = first === undefined ? border + after.bytes.length : border + first;
    // the next piece has no newline: the line is split at its end
    return first === undefined ? { end, next: end } : { end, next: end + 1 };
  }

  #line(start: number, end: number, number: number | null): LogLine {
    const piece = this.#pieces.get(Math.floor(start / PIECE_BYTES))!;
    const shown = Math.min(end, start + 4 * MAX_LINE_CHARS);
    const decoded = new TextDecoder().decode(this.#bytes(start, shown));
    const text = decoded.slice(0, MAX_LINE_CHARS);
    const parsed = parseAnsi(text, piece.styles.get(start) ?? null);
    if (parsed.state) piece.styles.set(end + 1, parsed.state);
    return { offset: start, number, spans: parsed.spans, cut: text === decoded ? end - shown : end - start - text.length };
  }

  #bytes(from: number, to: number): Uint8Array {
    const number = Math.floor(from / PIECE_BYTES);
    const base = number * PIECE_BYTES;
    const bytes = this.#pieces.get(number)!.bytes;
    if (to <= base + PIECE_BYTES) return bytes.subarray(from - base, to - base);
    const after = this.#pieces.get(number + 1)?.bytes ?? new Uint8Array();
    const joined = new Uint8Array(to - from);
    joined.set(bytes.subarray(from - base));
    joined.set(after.subarray(0, to - base - PIECE_BYTES), base + PIECE_BYTES - from);
    return joined;
  }
}

/** The number of values below `limit` in a sorted array. */
function countBelow(sorted: Uint32Array, limit: number): number {
  let low = 0;
  let high = sorted.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (sorted[middle]! < limit) low = middle + 1;
    else high = middle;
  }
  return low;
}
