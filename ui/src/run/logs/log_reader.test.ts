import { beforeEach, expect, it, vi } from "vitest";
import { getLogBytes } from "../api";
import { PIECE_BYTES } from "./log_document";
import { LogReader, SMALL_BYTES } from "./log_reader.svelte";

vi.mock("../api", () => ({ getLogBytes: vi.fn() }));

const asked = vi.mocked(getLogBytes);
let content = new Uint8Array();

const logOf = (lines: number) => {
  content = new TextEncoder().encode(Array.from({ length: lines }, (_, i) => `line ${String(i + 1).padStart(9, "0")}\n`).join(""));
};

function reading(size = content.length): LogReader {
  const reader = new LogReader("run", "log.txt");
  reader.grow(size);
  return reader;
}

const lastLine = ({ document }: LogReader) => document.lines(document.lineStart(document.size - 1) ?? 0, 1)[0];

beforeEach(() => {
  asked.mockReset();
  asked.mockImplementation(async (_id, _name, from, limit) => content.slice(from, from + limit));
});

it("reads all of a log that is more than one request may bring", async () => {
  logOf(100_000);
  expect(content.length).toBeLessThan(SMALL_BYTES);
  const reader = reading();
  await reader.read(0, content.length);
  expect(reader.document.complete).toBe(true);
  expect(reader.document.lineCount()).toBe(100_000);
  expect(lastLine(reader)).toMatchObject({ number: 100_000, spans: [{ text: "line 000100000" }] });
  expect(Math.max(...asked.mock.calls.map(([, , , limit]) => limit))).toBeLessThan(content.length);
});

it("asks for the end first, and keeps it though what is before is not here yet", async () => {
  logOf(100_000);
  const held = PIECE_BYTES / 2; // the first part begins within a piece
  const reader = reading();
  reader.document.put(0, content.slice(0, held));
  let bring = () => {};
  const waits = new Promise<void>((resolve) => (bring = resolve));
  asked.mockImplementation(async (_id, _name, from, limit) => {
    if (from === held) await waits;
    return content.slice(from, from + limit);
  });
  const done = reader.read(0, content.length);
  await vi.waitFor(() => expect(lastLine(reader)?.spans).toMatchObject([{ text: "line 000100000" }]));
  expect(asked.mock.calls[0]![2] + asked.mock.calls[0]![3]).toBe(content.length);
  bring();
  await done;
  expect(reader.document.lineCount()).toBe(100_000);
});

it("reads the end that came while it was reading", async () => {
  logOf(1000);
  const reader = reading(6000);
  const first = reader.read(0, 6000);
  reader.grow(content.length);
  await Promise.all([first, reader.read(0, content.length)]);
  expect(reader.document.complete).toBe(true);
  expect(lastLine(reader)).toMatchObject({ number: 1000 });
});
