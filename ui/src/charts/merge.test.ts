import { describe, expect, it } from "vitest";
import { append, downsample } from "./merge";
import { noPoints, type Points } from "./points";

function points(values: number[], first = 0): Points {
  return {
    steps: Float64Array.from(values, (_, i) => first + i),
    times: Float64Array.from(values, (_, i) => 1000 + first + i),
    values: Float64Array.from(values),
    next: first + values.length,
  };
}

describe("points that arrive later", () => {
  it("are appended, and the cursor advances", () => {
    const joined = append(points([1, 2]), points([3], 2), 100);
    expect([...joined.values]).toEqual([1, 2, 3]);
    expect([...joined.steps]).toEqual([0, 1, 2]);
    expect(joined.next).toBe(3);
  });

  it("change nothing if there are none", () => {
    expect([...append(points([1, 2]), noPoints(2), 100).values]).toEqual([1, 2]);
  });

  it("are limited to twice the number shown", () => {
    let cached = noPoints();
    for (let batch = 0; batch < 200; batch++) {
      cached = append(cached, points(Array.from({ length: 50 }, (_, i) => Math.sin(batch * 50 + i)), batch * 50), 400);
      expect(cached.values.length).toBeLessThanOrEqual(800);
    }
    expect(cached.next).toBe(10_000);
    expect(cached.steps[cached.steps.length - 1]).toBe(9_999);
  });
});

describe("downsampling", () => {
  it("keeps extremes and the last point", () => {
    const values = Array.from({ length: 100_000 }, () => 0);
    values[33_333] = 50;
    values[66_667] = -50;
    values[99_999] = 3;
    const sampled = downsample(points(values), 1000);
    expect(sampled.values.length).toBeLessThanOrEqual(1000);
    expect(Math.max(...sampled.values)).toBe(50);
    expect(Math.min(...sampled.values)).toBe(-50);
    expect(sampled.values[sampled.values.length - 1]).toBe(3);
    expect([...sampled.steps]).toEqual([...sampled.steps].sort((a, b) => a - b));
  });

  it("keeps short series unchanged and buckets without numbers as gaps", () => {
    const short = points([1, NaN, 3]);
    expect(downsample(short, 10)).toBe(short);
    expect([...downsample(points([1, 2, NaN, NaN, NaN, NaN, 5, 6]), 6).values].some(Number.isNaN)).toBe(true);
  });

  it("keeps the first point of NaN and infinity, and the finite extremes beside them", () => {
    const values = Array.from({ length: 100_000 }, (_, i) => i % 10);
    values.fill(NaN, 20_005, 20_009);
    values[50_005] = Infinity;
    values[70_005] = -Infinity;
    const sampled = downsample(points(values), 1000);
    const marks = [...sampled.steps].filter((_, i) => !Number.isFinite(sampled.values[i]));
    expect(marks).toEqual([20_005, 50_005, 70_005]);
    expect(Math.max(...[...sampled.values].filter(Number.isFinite))).toBe(9);
    expect([...sampled.steps]).toEqual([...sampled.steps].sort((a, b) => a - b));
    const alternating = downsample(points(values.map((value, i) => (i % 2 ? NaN : value))), 1000);
    expect(alternating.values.length).toBeLessThan(2000);
  });
});
