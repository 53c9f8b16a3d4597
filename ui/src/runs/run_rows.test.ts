import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { table as ask } from "../api/runs";
import type { Row } from "../api/types";
import { NEWEST_FIRST } from "./sorting";
import { RunsTable } from "./run_rows.svelte";

vi.mock("../api/runs", () => ({ table: vi.fn() }));

const row = { run_id: "digits_1", status: "Running" } as Row;
const asked = vi.mocked(ask);

beforeEach(() => {
  vi.useFakeTimers();
  asked.mockReset().mockResolvedValue({ total: 1, rows: [row], version: 1 });
});
afterEach(() => void vi.useRealTimers());

async function of(query: string): Promise<RunsTable> {
  const table = new RunsTable();
  table.question(query, NEWEST_FIRST);
  await vi.advanceTimersByTimeAsync(1000);
  return table;
}

it("asks again when a run that matched the query may no longer do so", async () => {
  (await of("metrics.loss<0.3")).changed({ ...row, metrics: { loss: 0.5 } });
  await vi.advanceTimersByTimeAsync(1000);
  expect(asked).toHaveBeenCalledTimes(2);
});

it("asks nothing for a change that moves no row", async () => {
  (await of("")).changed({ ...row, metrics: { loss: 0.5 } });
  await vi.advanceTimersByTimeAsync(1000);
  expect(asked).toHaveBeenCalledTimes(1);
});

it("asks again when a run is gone", async () => {
  const table = await of("");
  asked.mockResolvedValue({ total: 0, rows: [], version: 2 });
  table.removed();
  await vi.advanceTimersByTimeAsync(1000);
  expect(table.total).toBe(0);
});
