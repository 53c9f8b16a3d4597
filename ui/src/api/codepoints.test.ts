import { afterEach, expect, it, vi } from "vitest";
import { lengthInCodepoints, utf16Index } from "./codepoints";
import { complete } from "./runs";

afterEach(() => vi.unstubAllGlobals());

it("converts between code points and UTF-16 units", () => {
  expect(lengthInCodepoints("tags.x:🦊 sta", 13)).toBe(12);
  expect(utf16Index("tags.x:🦊 sta", 9)).toBe(10);
  expect(utf16Index("lr>1", 4)).toBe(4);
});

it("sends and receives completion positions in code points", async () => {
  const fetchMock = vi.fn(async (_path: string) => new Response('{"from": 9, "to": 12, "options": []}'));
  vi.stubGlobal("fetch", fetchMock);
  expect(await complete("tags.x:🦊 sta", 13)).toEqual({ from: 10, to: 13, options: [] });
  expect(new URL(fetchMock.mock.calls[0]![0], "http://yard").searchParams.get("at")).toBe("12");
});
