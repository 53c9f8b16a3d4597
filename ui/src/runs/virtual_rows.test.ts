import { expect, it } from "vitest";
import { pagesOf, maxVisibleRows, scrollToShow, visibleRange } from "./virtual_rows";

it("covers the viewport and some rows around it", () => {
  const range = visibleRange(34 * 5000, 680, 34, 10_000);
  expect(range.from).toBeLessThan(5000);
  expect(range.to).toBeGreaterThan(5020);
  expect(range.to - range.from).toBeLessThan(60);
});

it("stays within the list", () => {
  expect(visibleRange(0, 680, 34, 3)).toEqual({ from: 0, to: 3 });
  expect(visibleRange(99_999, 680, 34, 3)).toEqual({ from: 3, to: 3 });
  expect(visibleRange(0, 0, 34, 0)).toEqual({ from: 0, to: 0 });
});

it("returns all pages of a range", () => {
  expect(pagesOf({ from: 90, to: 110 }, 100)).toEqual([0, 1]);
  expect(pagesOf({ from: 100, to: 200 }, 100)).toEqual([1]);
  expect(pagesOf({ from: 5, to: 5 }, 100)).toEqual([]);
});

it("scrolls no further than necessary", () => {
  expect(scrollToShow(3, 34, 0, 340)).toBeNull();
  expect(scrollToShow(10, 34, 0, 340)).toBe(34);
  expect(scrollToShow(0, 34, 100, 340)).toBe(0);
});

it("never exceeds the maximum number of rows", () => {
  for (let top = 0; top < 200; top += 0.7) {
    const { from, to } = visibleRange(34 * 100 + top, 679, 34, 10_000);
    expect(to - from).toBeLessThanOrEqual(maxVisibleRows(679, 34));
  }
});
