import { beforeEach, expect, it, vi } from "vitest";
import { getValues } from "../api";
import { ValueReader } from "./value_reader.svelte";

vi.mock("../api", () => ({ getValues: vi.fn() }));

const request = vi.mocked(getValues);
let count = 0;

const loadedValues = (reader: ValueReader) => reader.values.map(({ value }) => value);
const numbers = (to: number) => Array.from({ length: to }, (_, i) => i);

beforeEach(() => {
  request.mockReset();
  request.mockImplementation(async (_id, name, after = 0, limit = 1000) => {
    const values = numbers(count).slice(after, after + limit);
    const next = after + values.length;
    return { name, kind: "row", count, next, values: values.map((value) => ({ step: null, time: 0, rank: null, value })) };
  });
});

it("loads all pages", async () => {
  count = 25_000;
  const reader = new ValueReader("run", "rows");
  await reader.load();
  expect(loadedValues(reader)).toEqual(numbers(25_000));
  expect(request).toHaveBeenCalledTimes(4);
});

it("loads each value once, also for concurrent calls, and values added in between", async () => {
  count = 10;
  const reader = new ValueReader("run", "rows");
  const first = reader.load();
  count = 12;
  await Promise.all([first, reader.load(), reader.load()]);
  expect(loadedValues(reader)).toEqual(numbers(12));
});

it("continues after a failure", async () => {
  count = 3000;
  const reader = new ValueReader("run", "rows");
  request.mockImplementationOnce(request.getMockImplementation()!).mockRejectedValueOnce(new Error("gone"));
  await reader.load();
  expect([reader.values.length, reader.problem?.message]).toEqual([1000, "gone"]);
  await reader.load();
  expect(loadedValues(reader)).toEqual(numbers(3000));
  expect(reader.problem).toBe(null);
});

it("loads no further pages after stop", async () => {
  count = 25_000;
  const reader = new ValueReader("run", "rows");
  const pending = reader.load();
  reader.stop();
  await pending;
  expect(request).toHaveBeenCalledTimes(1);
});
