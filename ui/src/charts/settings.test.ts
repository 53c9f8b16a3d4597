import { afterEach, expect, it, vi } from "vitest";
import { router } from "../router/router.svelte";
import { chartSettings } from "./settings.svelte";

afterEach(() => vi.unstubAllGlobals());

it("leaves the log alone that was chosen on the same page", () => {
  const place = { href: "http://here/" };
  vi.stubGlobal("location", place);
  vi.stubGlobal("history", { replaceState: (_: unknown, __: string, to: URL) => (place.href = to.href) });
  router.set({ log: "azureml-logs/70_driver_log.txt" });
  expect(chartSettings.logarithmic).toBe(false);
  chartSettings.setLogarithmic(true);
  expect(chartSettings.logarithmic).toBe(true);
  expect(router.query.get("log")).toBe("azureml-logs/70_driver_log.txt");
  chartSettings.setLogarithmic(false);
  expect([...router.query.keys()]).toEqual(["log"]);
});
