import { describe, expect, it } from "vitest";
import { areSingleValues, barExtent, firstNonFinite } from "./bars";
import type { Line } from "./lines";

const line = (xs: number[], ys: number[], changes: Partial<Line> = {}): Line => ({
  key: "a", label: "a", color: "#000", xs: Float64Array.from(xs), ys: Float64Array.from(ys), ...changes,
});

describe("single values", () => {
  it("are lines of one point each", () => {
    expect(areSingleValues([line([0], [1]), line([9], [NaN])])).toBe(true);
    expect(areSingleValues([line([0], [1]), line([0, 1], [1, 2])])).toBe(false);
    expect(areSingleValues([])).toBe(false);
  });

  it("have bars that start at zero", () => {
    expect(barExtent([0.9, 0.95, NaN])).toEqual([0, 0.95]);
    expect(barExtent([-3, 2, Infinity])).toEqual([-3, 2]);
    expect(barExtent([0, NaN])).toEqual([0, 1]);
  });
});

describe("the first value that is not finite", () => {
  it("is the leftmost of all lines", () => {
    expect(firstNonFinite([line([1, 2, 3], [1, 2, NaN]), line([1, 2], [1, Infinity])])).toEqual({ x: 2, value: Infinity });
    expect(firstNonFinite([line([1, 2], [1, 2])])).toBeNull();
  });

  it("is read from the raw values, and not from means and gaps", () => {
    expect(firstNonFinite([line([1, 2], [1, 1], { raw: Float64Array.from([1, NaN]) })])?.x).toBe(2);
    expect(firstNonFinite([line([1], [NaN], { members: 2 }), line([1], [NaN], { gaps: true })])).toBeNull();
  });
});
