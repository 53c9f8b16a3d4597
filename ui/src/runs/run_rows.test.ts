import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { getTable } from "../api/runs";
import type { Row } from "../api/types";
import { RunRows } from "./run_rows.svelte";
import { NEWEST_FIRST } from "./sorting";

vi.mock("../api/runs", () => ({ getTable: vi.fn() }));

const row = { run_id: "digits_1", status: "Running" } as Row;
const request = vi.mocked(getTable);

beforeEach(() => {
  vi.useFakeTimers();
  request.mockReset().mockResolvedValue({ total: 1, rows: [row], version: 1 });
});
afterEach(() => void vi.useRealTimers());

async function load(query: string): Promise<RunRows> {
  const rows = new RunRows();
  rows.setQuery(query, NEWEST_FIRST);
  await vi.advanceTimersByTimeAsync(1000);
  return rows;
}

it("reloads when a changed run may no longer match the query", async () => {
  (await load("metrics.loss<0.3")).changed({ ...row, metrics: { loss: 0.5 } });
  await vi.advanceTimersByTimeAsync(1000);
  expect(request).toHaveBeenCalledTimes(2);
});

it("does not reload for a change that moves no row", async () => {
  (await load("")).changed({ ...row, metrics: { loss: 0.5 } });
  await vi.advanceTimersByTimeAsync(1000);
  expect(request).toHaveBeenCalledTimes(1);
});

it("reloads when a run was removed", async () => {
  const rows = await load("");
  request.mockResolvedValue({ total: 0, rows: [], version: 2 });
  rows.removed();
  await vi.advanceTimersByTimeAsync(1000);
  expect(rows.total).toBe(0);
});

it("keeps the rows while a query is typed that matches nothing, until it is complete", async () => {
  const rows = await load("");
  request.mockResolvedValue({ total: 0, rows: [], version: 2 });
  rows.typing = true;
  rows.setQuery("digi", NEWEST_FIRST);
  await vi.advanceTimersByTimeAsync(1000);
  expect([rows.total, rows.unmatched, rows.at(0)]).toEqual([1, true, row]);
  rows.settle();
  expect([rows.total, rows.unmatched, rows.at(0)]).toEqual([0, false, undefined]);
  request.mockResolvedValue({ total: 1, rows: [row], version: 2 });
  rows.setQuery("digits", NEWEST_FIRST);
  await vi.advanceTimersByTimeAsync(1000);
  expect([rows.total, rows.unmatched]).toEqual([1, false]);
});

it("shows the result of the next query that matches something", async () => {
  const rows = await load("");
  request.mockResolvedValue({ total: 0, rows: [], version: 2 });
  rows.typing = true;
  rows.setQuery("digi", NEWEST_FIRST);
  await vi.advanceTimersByTimeAsync(1000);
  request.mockResolvedValue({ total: 1, rows: [{ ...row, run_id: "digits_2" }], version: 2 });
  rows.setQuery("digits", NEWEST_FIRST);
  await vi.advanceTimersByTimeAsync(1000);
  expect([rows.unmatched, rows.at(0)?.run_id]).toEqual([false, "digits_2"]);
});
