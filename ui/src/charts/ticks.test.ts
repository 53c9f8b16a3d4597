import { describe, expect, it } from "vitest";
import { logarithmicTicks, timeTicks, valueRange, xTicks, formatX, yTicks } from "./ticks";

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
    expect(xTicks("relative", [0, 30, 90, 120, 3600, 5400, 172_800])).toEqual(
      ["0 s", "30 s", "1:30", "2 min", "1 h", "1 h 30", "2 d"],
    );
    expect(xTicks("step", [2500, 0.5])).toEqual(["2.5k", ""]);
  });

  it("never have the same label twice", () => {
    expect(xTicks("step", [684_100, 684_120, 684_140])).toEqual(["684,100", "684,120", "684,140"]);
    expect(xTicks("step", [1_000_000, 1_001_000])).toEqual(["1,000,000", "1,001,000"]);
    expect(xTicks("relative", [7200, 7210, 7220])).toEqual(["2:00:00", "2:00:10", "2:00:20"]);
    expect(xTicks("relative", [45.001, 45.002])).toEqual(["0:45.001", "0:45.002"]);
    expect(yTicks([100_000.2, 100_000.4])).toEqual(["100,000.2", "100,000.4"]);
    expect(yTicks([100_000, 100_000.25, 100_000.5])).toEqual(["100000", "100000.25", "100000.5"]);
    expect(yTicks([10_000, 10_250])).toEqual(["10,000", "10,250"]);
    expect(yTicks([2_000_100, 2_000_200])).toEqual(["2,000,100", "2,000,200"]);
    expect(yTicks([0.9999991, 0.9999992])).toEqual(["0.9999991", "0.9999992"]);
    expect(yTicks([1.000001e-5, 1.000002e-5])).toEqual(["1.000001e−5", "1.000002e−5"]);
    expect(yTicks([1e9, 1.000001e9])).toEqual(["1e9", "1.000001e9"]);
  });

  it("have their unit in tooltips", () => {
    expect(formatX("step", 12_000)).toBe("step 12,000");
    expect(formatX("relative", 61)).toContain("1 min");
  });
});

it("labels a time axis as precisely as its ticks are apart", () => {
  const at = new Date(2026, 10, 16, 4, 27, 30).getTime() / 1000;
  expect(timeTicks([at], 10)).toEqual(["04:27:30"]);
  expect(timeTicks([at], 60)).toEqual(["04:27"]);
  expect(timeTicks([at], 86_400)).toEqual(["11-16"]);
  expect(timeTicks([at, at + 0.2], 0.2)).toEqual(["04:27:30.0", "04:27:30.2"]);
  expect(timeTicks([at, at + 0.005], 0.005)).toEqual(["04:27:30.000", "04:27:30.005"]);
});
