import { describe, expect, it } from "vitest";
import { smooth } from "./smooth";

const line = (count: number) => Float64Array.from({ length: count }, (_, i) => i);

describe("smoothing", () => {
  it("of nothing changes nothing", () => {
    const values = Float64Array.from([3, 1, 2, 5]);
    expect(smooth(line(4), values, 0)).toBe(values);
  });

  it("begins at the first value, not at zero", () => {
    const found = smooth(line(50), new Float64Array(50).fill(7), 0.95);
    for (const value of found) expect(value).toBeCloseTo(7, 9);
  });

  it("follows the middle of noise", () => {
    const noise = Float64Array.from({ length: 400 }, (_, i) => (i % 2 ? 10 : 0));
    const found = smooth(line(400), noise, 0.9);
    for (const value of found.slice(50)) expect(Math.abs(value - 5)).toBeLessThan(0.5);
  });

  it("lets a gap stay a gap and goes on behind it", () => {
    const found = smooth(line(5), Float64Array.from([1, 1, NaN, 1, 1]), 0.5);
    expect(Number.isNaN(found[2])).toBe(true);
    expect(found[3]).toBeCloseTo(1, 9);
  });

  it("forgets over a wide gap", () => {
    const xs = Float64Array.from([0, 1, 2, 3, 1000, 1001]);
    const found = smooth(xs, Float64Array.from([5, 5, 5, 5, 0, 0]), 0.6);
    expect(found[4]).toBeLessThan(1);
  });
});
