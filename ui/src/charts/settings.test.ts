import { afterEach, expect, it, vi } from "vitest";
import { router } from "../router/router.svelte";
import { chartSettings } from "./settings.svelte";

afterEach(() => vi.unstubAllGlobals());

it("does not change the log selected on the same page", () => {
  const fakeLocation = { href: "http://localhost/" };
  vi.stubGlobal("location", fakeLocation);
  vi.stubGlobal("history", { replaceState: (_: unknown, __: string, to: URL) => (fakeLocation.href = to.href) });
  router.set({ log: "azureml-logs/70_driver_log.txt" });
  expect(chartSettings.logarithmic).toBe(false);
  chartSettings.setLogarithmic(true);
  expect(chartSettings.logarithmic).toBe(true);
  expect(router.query.get("log")).toBe("azureml-logs/70_driver_log.txt");
  chartSettings.setLogarithmic(false);
  expect([...router.query.keys()]).toEqual(["log"]);
});
