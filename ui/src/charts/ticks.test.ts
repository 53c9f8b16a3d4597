import { describe, expect, it } from "vitest";
import { logarithmicTicks, timeTick, valueRange, xTick, formatX, yTicks } from "./ticks";

describe("the range of values", () => {
  it("covers all finite values with some padding", () => {
    const [low, high] = valueRange([Float64Array.from([1, NaN, 3]), Float64Array.from([Infinity, 2])], false);
    expect(low).toBeLessThan(1);
    expect(high).toBeGreaterThan(3);
    expect(high).toBeLessThan(4);
  });

  it("is not empty for one value or none", () => {
    expect(valueRange([Float64Array.from([5])], false)).toEqual([4.5, 5.5]);
    expect(valueRange([Float64Array.from([0])], false)).toEqual([-1, 1]);
    expect(valueRange([], false)).toEqual([0, 1]);
    expect(valueRange([Float64Array.from([-1, 0])], true)).toEqual([0.1, 1]);
  });

  it("ignores values that have no logarithm", () => {
    const [low, high] = valueRange([Float64Array.from([-5, 0, 0.01, 10])], true);
    expect(low).toBeGreaterThan(0.001);
    expect(high).toBeGreaterThan(10);
  });
});

describe("ticks", () => {
  it("of a logarithmic axis are round numbers", () => {
    expect(logarithmicTicks(0.9, 120)).toEqual([1, 2, 5, 10, 20, 50, 100]);
    expect(logarithmicTicks(1e-8, 2)).toEqual([1e-8, 1e-6, 1e-4, 0.01, 1]);
    expect(logarithmicTicks(0.31, 0.34).length).toBeGreaterThanOrEqual(2);
  });

  it("have short labels", () => {
    expect(yTicks([0, 0.25, 0.5])).toEqual(["0", "0.25", "0.5"]);
    expect(yTicks([-1e-5, 0, 2.5e-4])).toEqual(["−1e−5", "0", "2.5e−4"]);
    expect(yTicks([0, 20_000])).toEqual(["0", "20k"]);
    expect([0, 30, 90, 120, 3600, 5400, 172_800].map((s) => xTick("relative", s))).toEqual(
      ["0 s", "30 s", "1:30", "2 min", "1 h", "1 h 30", "2 d"],
    );
    expect(xTick("step", 2500)).toBe("2.5k");
    expect(xTick("step", 0.5)).toBe("");
  });

  it("have their unit in tooltips", () => {
    expect(formatX("step", 12_000)).toBe("step 12,000");
    expect(formatX("relative", 61)).toContain("1 min");
  });
});

it("labels a time axis as precisely as its ticks are apart", () => {
  const at = new Date(2026, 10, 16, 4, 27, 30).getTime() / 1000;
  expect(timeTick(at, 10)).toBe("04:27:30");
  expect(timeTick(at, 60)).toBe("04:27");
  expect(timeTick(at, 86_400)).toBe("11-16");
});
