import { beforeEach, expect, it, vi } from "vitest";
import { getLogBytes } from "../api";
import { PIECE_BYTES } from "./log_document";
import { LogReader, SMALL_BYTES } from "./log_reader.svelte";

vi.mock("../api", () => ({ getLogBytes: vi.fn() }));

const request = vi.mocked(getLogBytes);
let content = new Uint8Array();

const logOf = (lines: number) => {
  content = new TextEncoder().encode(Array.from({ length: lines }, (_, i) => `line ${String(i + 1).padStart(9, "0")}\n`).join(""));
};

function createReader(size = content.length): LogReader {
  const reader = new LogReader("run", "log.txt");
  reader.grow(size);
  return reader;
}

const lastLine = ({ document }: LogReader) => document.lines(document.lineStart(document.size - 1) ?? 0, 1)[0];

beforeEach(() => {
  request.mockReset();
  request.mockImplementation(async (_id, _name, from, limit) => content.slice(from, from + limit));
});

it("splits a log into several requests", async () => {
  logOf(100_000);
  expect(content.length).toBeLessThan(SMALL_BYTES);
  const reader = createReader();
  await reader.read(0, content.length);
  expect(reader.document.complete).toBe(true);
  expect(reader.document.lineCount()).toBe(100_000);
  expect(lastLine(reader)).toMatchObject({ number: 100_000, spans: [{ text: "line 000100000" }] });
  expect(Math.max(...request.mock.calls.map(([, , , limit]) => limit))).toBeLessThan(content.length);
});

it("requests the end first, and keeps it before earlier parts arrive", async () => {
  logOf(100_000);
  const loaded = PIECE_BYTES / 2; // the first request starts inside a piece
  const reader = createReader();
  reader.document.put(0, content.slice(0, loaded));
  let release = () => {};
  const blocked = new Promise<void>((resolve) => (release = resolve));
  request.mockImplementation(async (_id, _name, from, limit) => {
    if (from === loaded) await blocked;
    return content.slice(from, from + limit);
  });
  const done = reader.read(0, content.length);
  await vi.waitFor(() => expect(lastLine(reader)?.spans).toMatchObject([{ text: "line 000100000" }]));
  expect(request.mock.calls[0]![2] + request.mock.calls[0]![3]).toBe(content.length);
  release();
  await done;
  expect(reader.document.lineCount()).toBe(100_000);
});

it("loads bytes that were added during a request", async () => {
  logOf(1000);
  const reader = createReader(6000);
  const first = reader.read(0, 6000);
  reader.grow(content.length);
  await Promise.all([first, reader.read(0, content.length)]);
  expect(reader.document.complete).toBe(true);
  expect(lastLine(reader)).toMatchObject({ number: 1000 });
});
