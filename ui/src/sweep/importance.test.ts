import { expect, test, vi } from "vitest";
import { getImportance, type Child, type Sweep } from "./api";
import { ImportanceLoader } from "./importance.svelte";

vi.mock("./api", () => ({ getImportance: vi.fn() }));

const request = vi.mocked(getImportance);
const sweep = (...bests: (number | null)[]) =>
  ({ sweep_id: "HD", children: bests.map((best, number) => ({ number, best }) as Child) }) as Sweep;

test("importance is reloaded when results change, and only then", async () => {
  request.mockReset().mockResolvedValue({ parameters: {}, why_not: "" });
  const loader = new ImportanceLoader();
  for (const state of [sweep(1, null), sweep(1, null), sweep(2, null), sweep(2, 1), sweep(2, 1)]) await loader.update(state);
  expect(request).toHaveBeenCalledTimes(3);
});

test("a failed request is reported and retried", async () => {
  const response = { parameters: { lr: 1 }, why_not: "" };
  request.mockReset().mockRejectedValueOnce(new Error("away")).mockResolvedValue(response);
  const loader = new ImportanceLoader();
  await loader.update(sweep(1));
  expect(loader.problem?.message).toBe("away");
  await loader.update(sweep(1));
  expect(loader.data).toEqual(response);
  expect(loader.problem).toBeNull();
});
