import { describe, expect, it } from "vitest";
import { LogDocument, PIECE_BYTES } from "./log_document";

const bytes = (text: string) => new TextEncoder().encode(text);

/** A log that is loaded as by a page: missing ranges only. */
class LoadedLog {
  readonly document = new LogDocument();
  fetched = 0;

  constructor(public content: Uint8Array) {
    this.document.grow(content.length);
  }

  read(from: number, to: number): this {
    for (const [offset, length] of this.document.missing(from, to)) {
      this.fetched += length;
      this.document.put(offset, this.content.subarray(offset, offset + length));
    }
    return this;
  }

  write(text: string): void {
    const added = bytes(text);
    const extended = new Uint8Array(this.content.length + added.length);
    extended.set(this.content);
    extended.set(added, this.content.length);
    this.content = extended;
    this.document.grow(extended.length);
  }

  texts(start: number, count: number): string[] {
    return this.document.lines(start, count).map((line) => line.spans.map((span) => span.text).join(""));
  }
}

const small = () => new LoadedLog(bytes("first\n\nthird ü\nlast")).read(0, 1000);

describe("a small log", () => {
  it("includes the unterminated last line", () => {
    expect(small().texts(0, 10)).toEqual(["first", "", "third ü", "last"]);
    expect(small().document.lineCount()).toBe(4);
    expect(small().document.complete).toBe(true);
  });

  it("finds starts and numbers of lines", () => {
    const { document } = small();
    expect([0, 3, 5, 6, 7, 9, 16, 99].map((offset) => document.lineStart(offset))).toEqual([0, 0, 0, 6, 7, 7, 16, 16]);
    expect(document.lines(7, 5).map((line) => line.number)).toEqual([3, 4]);
    expect([1, 2, 3, 4, 5].map((number) => document.startOfLine(number))).toEqual([0, 6, 7, 16, null]);
  });

  it("with a final newline has no empty last line", () => {
    const log = new LoadedLog(bytes("a\nb\n")).read(0, 10);
    expect(log.texts(0, 10)).toEqual(["a", "b"]);
    expect(log.document.lineCount()).toBe(2);
  });

  it("without content has no lines", () => {
    const log = new LoadedLog(bytes(""));
    expect(log.texts(0, 10)).toEqual([]);
    expect(log.document.lineCount()).toBe(0);
  });

  it("loads only new bytes when it grows", () => {
    const log = small();
    const before = log.fetched;
    log.write(" words\nmore\n");
    log.read(0, 1000);
    expect(log.fetched - before).toBe(" words\nmore\n".length);
    expect(log.texts(16, 5)).toEqual(["last words", "more"]);
  });

  it("is loaded again if it shrank", () => {
    const log = small();
    log.content = bytes("new\n");
    log.document.grow(4);
    expect(log.read(0, 4).texts(0, 5)).toEqual(["new"]);
  });
});

describe("a log of many pieces", () => {
  const line = (i: number) => `line ${i} ${"x".repeat(i % 90)}`;
  const lines = Array.from({ length: 60_000 }, (_, i) => line(i));
  const content = bytes(lines.join("\n") + "\n");

  it("can be read from the middle", () => {
    const log = new LoadedLog(content);
    const middle = Math.floor(content.length / 2);
    log.read(middle - PIECE_BYTES, middle + PIECE_BYTES);
    expect(log.fetched).toBeLessThanOrEqual(4 * PIECE_BYTES);
    const start = log.document.lineStart(middle)!;
    const shown = log.texts(start, 100);
    const first = Number(shown[0]!.split(" ")[1]);
    expect(shown).toEqual(lines.slice(first, first + 100));
    expect(log.document.lines(start, 1)[0]!.number).toBeNull();
  });

  it("derives line numbers from one known number", () => {
    const log = new LoadedLog(content);
    const offset = bytes(lines.slice(0, 30_000).join("\n") + "\n").length;
    log.read(offset - 2 * PIECE_BYTES, offset + PIECE_BYTES);
    log.document.setLineNumber(offset, 30_001);
    expect(log.document.lines(offset, 2).map((line) => line.number)).toEqual([30_001, 30_002]);
    const above = log.document.move(offset, -1500).start;
    expect(log.document.lines(above, 1)[0]!.number).toBe(28_501);
  });

  it("has all line numbers if it was read from the start", () => {
    const log = new LoadedLog(content).read(0, content.length);
    const middle = log.document.lineStart(1_500_000)!;
    const shown = log.document.lines(middle, 1)[0]!;
    expect(lines[shown.number! - 1]).toBe(shown.spans[0]!.text);
    expect(log.document.startOfLine(shown.number!)).toBe(middle);
    expect(log.document.lineCount()).toBe(60_000);
  });

  it("moves across pieces, down and up", () => {
    const log = new LoadedLog(content).read(0, content.length);
    const down = log.document.move(0, 20_000);
    expect(log.texts(down.start, 1)).toEqual([line(20_000)]);
    expect(log.document.move(down.start, -20_000)).toEqual({ start: 0, moved: -20_000 });
    expect(log.document.move(down.start, 1e9).moved).toBe(39_999);
  });

  it("stops moving at the end of the loaded pieces", () => {
    const log = new LoadedLog(content).read(0, PIECE_BYTES);
    const { start, moved } = log.document.move(0, 1e6);
    expect(moved).toBeGreaterThan(500);
    expect(start).toBeLessThan(PIECE_BYTES);
  });
});

describe("a very long line", () => {
  it("is split at pieces and truncated", () => {
    const log = new LoadedLog(bytes(`begin\n${"y".repeat(5 * PIECE_BYTES)}\nend\n`)).read(0, 1e9);
    const starts: number[] = [0];
    for (let next = log.document.nextLine(0); next !== null; next = log.document.nextLine(next)) starts.push(next);
    expect(starts.length).toBeLessThan(10);
    for (const start of starts) expect(log.document.lineStart(start)).toBe(start);
    for (let i = 1; i < starts.length; i++) expect(log.document.previousLine(starts[i]!)).toBe(starts[i - 1]);
    expect(log.document.lines(starts[1]!, 1)[0]!.cut).toBeGreaterThan(50_000);
    expect(log.texts(starts[starts.length - 1]!, 1)).toEqual(["end"]);
  });
});
