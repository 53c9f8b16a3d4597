import { expect, test, vi } from "vitest";
import { getImportance, type Child, type Sweep } from "./api";
import { Importances } from "./importance.svelte";

vi.mock("./api", () => ({ getImportance: vi.fn() }));

const asked = vi.mocked(getImportance);
const sweep = (...bests: (number | null)[]) =>
  ({ sweep_id: "HD", children: bests.map((best, number) => ({ number, best }) as Child) }) as Sweep;

test("importance is asked for when a result got better, and not when nothing is new", async () => {
  asked.mockReset().mockResolvedValue({ parameters: {}, why_not: "" });
  const importances = new Importances();
  for (const one of [sweep(1, null), sweep(1, null), sweep(2, null), sweep(2, 1), sweep(2, 1)]) await importances.follow(one);
  expect(asked).toHaveBeenCalledTimes(3);
});

test("a question that failed is told, and asked again", async () => {
  const found = { parameters: { lr: 1 }, why_not: "" };
  asked.mockReset().mockRejectedValueOnce(new Error("away")).mockResolvedValue(found);
  const importances = new Importances();
  await importances.follow(sweep(1));
  expect(importances.problem?.message).toBe("away");
  await importances.follow(sweep(1));
  expect(importances.answer).toEqual(found);
  expect(importances.problem).toBeNull();
});
