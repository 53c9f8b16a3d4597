import { expect, it } from "vitest";
import { ariaSort, clicked, NEWEST_FIRST, parseSort, sortText } from "./sorting";

it("writes what it reads", () => {
  expect(sortText(parseSort("-metrics.loss,created_at"))).toBe("-metrics.loss,created_at");
});

it("sorts by a clicked column, then the other way, then newest first again", () => {
  const first = clicked(NEWEST_FIRST, "metrics.loss", true, false);
  expect(first).toBe("-metrics.loss");
  const second = clicked(first, "metrics.loss", true, false);
  expect(second).toBe("metrics.loss");
  expect(clicked(second, "metrics.loss", true, false)).toBe(NEWEST_FIRST);
});

it("begins text at A and numbers at the largest", () => {
  expect(clicked(NEWEST_FIRST, "experiment", false, false)).toBe("experiment");
});

it("adds a further column with Shift", () => {
  const two = clicked("experiment", "metrics.loss", true, true);
  expect(two).toBe("experiment,-metrics.loss");
  expect(clicked(two, "metrics.loss", true, true)).toBe("experiment,metrics.loss");
  expect(clicked("experiment,metrics.loss", "metrics.loss", true, true)).toBe("experiment");
});

it("says which column leads", () => {
  expect(ariaSort("-a,b", "a")).toBe("descending");
  expect(ariaSort("-a,b", "b")).toBe("none");
});
