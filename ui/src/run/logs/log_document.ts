// A log of any size, of which only some pieces are here: lines by the byte at which they begin.

import { PLAIN, spansOf, type Look, type Span } from "./ansi";

export const PIECE_BYTES = 64 * 1024;
const MOST_PIECES = 96; // 6 MB of a log at a time
const LONGEST_SHOWN = 4000; // characters of one line
const NEWLINE = 10;

export interface LogLine {
  offset: number; // of its first byte: its name, as long as the log only grows
  number: number | null; // from 1; null where the pieces before are not all known
  spans: Span[];
  cut: number; // bytes that are not shown
}

interface Piece {
  bytes: Uint8Array;
  lineEnds: Uint32Array; // where its newlines are
  looks: Map<number, Look>; // the look with which a line begins
}

export class LogDocument {
  size = 0;
  #pieces = new Map<number, Piece>();
  #linesBefore = new Map([[0, 0]]); // lines that begin in the pieces before each piece, where that is known

  /** The log is as long as this now. A log that shrank is another one: nothing of it is known. */
  grow(size: number): void {
    if (size < this.size) {
      this.#pieces.clear();
      this.#linesBefore = new Map([[0, 0]]);
    }
    this.size = size;
  }

  /** Bytes that arrived, from where `wanted` asked for them on. */
  put(offset: number, bytes: Uint8Array): void {
    this.size = Math.max(this.size, offset + bytes.length);
    let at = 0;
    while (at < bytes.length) {
      const number = Math.floor((offset + at) / PIECE_BYTES);
      const inside = offset + at - number * PIECE_BYTES;
      const part = bytes.subarray(at, at + PIECE_BYTES - inside);
      const held = this.#pieces.get(number);
      const before = held?.bytes.length ?? 0;
      if (inside <= before && inside + part.length > before) {
        const whole = new Uint8Array(inside + part.length);
        if (held) whole.set(held.bytes.subarray(0, inside));
        whole.set(part, inside);
        this.#keep(number, whole);
      }
      at += part.length;
    }
  }

  /** What is to be fetched to know the bytes from `from` to `to`: [offset, length] of stretches, in order. */
  wanted(from: number, to: number): [number, number][] {
    const found: [number, number][] = [];
    const last = Math.floor(Math.max(from, Math.min(to, this.size) - 1) / PIECE_BYTES);
    for (let number = Math.max(0, Math.floor(from / PIECE_BYTES)); number <= last; number++) {
      const begin = number * PIECE_BYTES + (this.#pieces.get(number)?.bytes.length ?? 0);
      const end = Math.min((number + 1) * PIECE_BYTES, this.size);
      const previous = found[found.length - 1];
      if (begin >= end) continue;
      if (previous && previous[0] + previous[1] === begin) previous[1] += end - begin;
      else found.push([begin, end - begin]);
    }
    return found;
  }

  /** The line that begins at or before `offset`; null when the bytes there are not here. */
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
    // a line that goes on for a whole piece is broken there: nobody reads it, and its beginning may be gigabytes away
    return last === undefined ? base : base - PIECE_BYTES + last + 1;
  }

  /** Where the line after the one that begins at `start` begins; null at the end, or when it is not here. */
  nextLine(start: number): number | null {
    const end = this.#lineEnd(start);
    return end === null || end.next >= this.size ? null : end.next;
  }

  previousLine(start: number): number | null {
    return start <= 0 ? null : this.lineStart(start - 1);
  }

  /** `lines` further down (or up, if negative), as far as the log and its known pieces go. */
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

  /** Up to `count` lines from the one that begins at `start`. */
  lines(start: number, count: number): LogLine[] {
    const found: LogLine[] = [];
    let number = this.#numberOf(start);
    for (let at: number | null = start; at !== null && found.length < count; at = this.nextLine(at)) {
      const end = this.#lineEnd(at);
      if (end === null || (end.end === at && at >= this.size)) break;
      found.push(this.#line(at, end.end, number));
      if (number !== null) number++;
    }
    return found;
  }

  /** Somebody who read all of it says which number a line has: those around it have theirs from that. */
  know(start: number, number: number): void {
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

  /** Where the line with this number begins; null where it is not known. */
  startOfLine(number: number): number | null {
    let piece = 0;
    while ((this.#linesBefore.get(piece + 1) ?? Infinity) < number) piece++;
    const ends = this.#pieces.get(piece)?.lineEnds;
    if (!ends) return null;
    const inside = number - 1 - this.#linesBefore.get(piece)!;
    if (inside > 0) return inside <= ends.length ? piece * PIECE_BYTES + ends[inside - 1]! + 1 : null;
    return piece === 0 ? 0 : this.lineStart(piece * PIECE_BYTES);
  }

  /** How many lines there are, once all bytes are here. */
  lineCount(): number | null {
    const last = Math.floor(Math.max(0, this.size - 1) / PIECE_BYTES);
    const before = this.#linesBefore.get(last);
    const piece = this.#pieces.get(last);
    if (before === undefined || !piece || !this.size) return this.size ? null : 0;
    const open = piece.bytes[piece.bytes.length - 1] === NEWLINE ? 0 : 1;
    return before + piece.lineEnds.length + open;
  }

  /** Bytes of a line, on average, of what is here: how high the log would be can only be guessed before it is read. */
  usualLineBytes(): number {
    let bytes = 0;
    let lines = 0;
    for (const piece of this.#pieces.values()) {
      bytes += piece.bytes.length;
      lines += piece.lineEnds.length;
    }
    return lines ? bytes / lines : 80;
  }

  /** All bytes are here, so that every line has its number and its place. */
  get complete(): boolean {
    return this.wanted(0, this.size).length === 0;
  }

  #keep(number: number, bytes: Uint8Array): void {
    const ends: number[] = [];
    for (let at = bytes.indexOf(NEWLINE); at >= 0; at = bytes.indexOf(NEWLINE, at + 1)) ends.push(at);
    this.#pieces.delete(number); // set anew, so that the oldest is the one that was longest not asked for
    this.#pieces.set(number, { bytes, lineEnds: Uint32Array.from(ends), looks: new Map() });
    this.#countLines(number);
    for (const oldest of this.#pieces.keys()) {
      if (this.#pieces.size <= MOST_PIECES) break;
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
    const own = piece.lineEnds[countBelow(piece.lineEnds, start - base)];
    if (own !== undefined) return { end: base + own, next: base + own + 1 };
    const border = base + PIECE_BYTES;
    if (border >= this.size) return { end: this.size, next: this.size };
    if (piece.bytes.length < PIECE_BYTES) return null;
    if (!piece.lineEnds.length) return { end: border, next: border };
    const after = this.#pieces.get(number + 1);
    if (!after) return null;
    const first = after.lineEnds[0];
    const end = first === undefined ? border + after.bytes.length : border + first;
    // the piece after has no newline: the line goes to its end, and another begins there
    return first === undefined ? { end, next: end } : { end, next: end + 1 };
  }

  #line(start: number, end: number, number: number | null): LogLine {
    const piece = this.#pieces.get(Math.floor(start / PIECE_BYTES))!;
    const shown = Math.min(end, start + 4 * LONGEST_SHOWN);
    const whole = new TextDecoder().decode(this.#bytes(start, shown));
    const text = whole.length > LONGEST_SHOWN ? whole.slice(0, LONGEST_SHOWN) : whole;
    const look = piece.looks.get(start) ?? PLAIN;
    const parsed = spansOf(text, look);
    if (parsed.look !== PLAIN) piece.looks.set(end + 1, parsed.look);
    return { offset: start, number, spans: parsed.spans, cut: text === whole ? end - shown : end - start - text.length };
  }

  #bytes(from: number, to: number): Uint8Array {
    const number = Math.floor(from / PIECE_BYTES);
    const base = number * PIECE_BYTES;
    const own = this.#pieces.get(number)!.bytes;
    if (to <= base + PIECE_BYTES) return own.subarray(from - base, to - base);
    const after = this.#pieces.get(number + 1)?.bytes ?? new Uint8Array();
    const joined = new Uint8Array(to - from);
    joined.set(own.subarray(from - base));
    joined.set(after.subarray(0, to - base - PIECE_BYTES), base + PIECE_BYTES - from);
    return joined;
  }
}

/** How many of the rising numbers are below `limit`. */
function countBelow(rising: Uint32Array, limit: number): number {
  let low = 0;
  let high = rising.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (rising[middle]! < limit) low = middle + 1;
    else high = middle;
  }
  return low;
}
