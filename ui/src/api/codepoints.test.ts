import { afterEach, expect, it, vi } from "vitest";
import { lettersTo, placeAfter } from "./codepoints";
import { complete } from "./runs";

afterEach(() => vi.unstubAllGlobals());

it("counts an emoji once for the yard and twice for the browser", () => {
  expect(lettersTo("tags.x:🦊 sta", 13)).toBe(12);
  expect(placeAfter("tags.x:🦊 sta", 9)).toBe(10);
  expect(placeAfter("lr>1", 4)).toBe(4);
});

it("asks for a completion, and takes it, where the caret is", async () => {
  const fetched = vi.fn(async (_path: string) => new Response('{"from": 9, "to": 12, "options": []}'));
  vi.stubGlobal("fetch", fetched);
  expect(await complete("tags.x:🦊 sta", 13)).toEqual({ from: 10, to: 13, options: [] });
  expect(new URL(fetched.mock.calls[0]![0], "http://yard").searchParams.get("at")).toBe("12");
});
