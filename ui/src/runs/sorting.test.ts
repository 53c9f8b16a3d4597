import { expect, it } from "vitest";
import { ariaSort, nextSort, NEWEST_FIRST, parseSort, sortText } from "./sorting";

it("round-trips through text", () => {
  expect(sortText(parseSort("-metrics.loss,created_at"))).toBe("-metrics.loss,created_at");
});

it("cycles through both directions and back to newest first", () => {
  const first = nextSort(NEWEST_FIRST, "metrics.loss", true, false);
  expect(first).toBe("-metrics.loss");
  const second = nextSort(first, "metrics.loss", true, false);
  expect(second).toBe("metrics.loss");
  expect(nextSort(second, "metrics.loss", true, false)).toBe(NEWEST_FIRST);
});

it("sorts text ascending and numbers descending first", () => {
  expect(nextSort(NEWEST_FIRST, "experiment", false, false)).toBe("experiment");
});

it("adds a key with Shift", () => {
  const two = nextSort("experiment", "metrics.loss", true, true);
  expect(two).toBe("experiment,-metrics.loss");
  expect(nextSort(two, "metrics.loss", true, true)).toBe("experiment,metrics.loss");
  expect(nextSort("experiment,metrics.loss", "metrics.loss", true, true)).toBe("experiment");
});

it("reports the primary column", () => {
  expect(ariaSort("-a,b", "a")).toBe("descending");
  expect(ariaSort("-a,b", "b")).toBe("none");
});
