import { describe, expect, it } from "vitest";
import { smooth } from "./smooth";

const line = (count: number) => Float64Array.from({ length: count }, (_, i) => i);

describe("smoothing", () => {
  it("with weight 0 returns the values", () => {
    const values = Float64Array.from([3, 1, 2, 5]);
    expect(smooth(line(4), values, 0)).toBe(values);
  });

  it("starts at the first value, not at zero", () => {
    const smoothed = smooth(line(50), new Float64Array(50).fill(7), 0.95);
    for (const value of smoothed) expect(value).toBeCloseTo(7, 9);
  });

  it("follows the mean of noise", () => {
    const noise = Float64Array.from({ length: 400 }, (_, i) => (i % 2 ? 10 : 0));
    const smoothed = smooth(line(400), noise, 0.9);
    for (const value of smoothed.slice(50)) expect(Math.abs(value - 5)).toBeLessThan(0.5);
  });

  it("keeps gaps and continues after them", () => {
    const smoothed = smooth(line(5), Float64Array.from([1, 1, NaN, 1, 1]), 0.5);
    expect(Number.isNaN(smoothed[2])).toBe(true);
    expect(smoothed[3]).toBeCloseTo(1, 9);
  });

  it("forgets the past over a wide gap", () => {
    const xs = Float64Array.from([0, 1, 2, 3, 1000, 1001]);
    const smoothed = smooth(xs, Float64Array.from([5, 5, 5, 5, 0, 0]), 0.6);
    expect(smoothed[4]).toBeLessThan(1);
  });
});
