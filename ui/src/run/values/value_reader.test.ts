import { beforeEach, expect, it, vi } from "vitest";
import { getValues } from "../api";
import { ValueReader } from "./value_reader.svelte";

vi.mock("../api", () => ({ getValues: vi.fn() }));

const asked = vi.mocked(getValues);
let count = 0;

const seen = (reader: ValueReader) => reader.values.map((one) => one.value);
const numbers = (to: number) => Array.from({ length: to }, (_, i) => i);

beforeEach(() => {
  asked.mockReset();
  asked.mockImplementation(async (_id, name, after = 0, limit = 1000) => {
    const values = numbers(count).slice(after, after + limit);
    const next = after + values.length;
    return { name, kind: "row", count, next, values: values.map((value) => ({ step: null, time: 0, rank: null, value })) };
  });
});

it("reads all, however many there are", async () => {
  count = 25_000;
  const reader = new ValueReader("run", "rows");
  await reader.read();
  expect(seen(reader)).toEqual(numbers(25_000));
  expect(asked).toHaveBeenCalledTimes(4);
});

it("has each value once when it is asked while it reads, and those that came meanwhile", async () => {
  count = 10;
  const reader = new ValueReader("run", "rows");
  const first = reader.read();
  count = 12;
  await Promise.all([first, reader.read(), reader.read()]);
  expect(seen(reader)).toEqual(numbers(12));
});

it("goes on where it was after a failure", async () => {
  count = 3000;
  const reader = new ValueReader("run", "rows");
  asked.mockImplementationOnce(asked.getMockImplementation()!).mockRejectedValueOnce(new Error("gone"));
  await reader.read();
  expect([reader.values.length, reader.problem?.message]).toEqual([1000, "gone"]);
  await reader.read();
  expect(seen(reader)).toEqual(numbers(3000));
  expect(reader.problem).toBe(null);
});

it("asks for no more pages once nobody looks", async () => {
  count = 25_000;
  const reader = new ValueReader("run", "rows");
  const going = reader.read();
  reader.stop();
  await going;
  expect(asked).toHaveBeenCalledTimes(1);
});
