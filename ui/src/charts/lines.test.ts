import { describe, expect, it } from "vitest";
import { toCurve, toLine, mean, nearest } from "./lines";
import type { Points } from "./points";

const floats = (...values: number[]) => Float64Array.from(values);

function points(steps: number[], times: number[], values: number[], next = values.length): Points {
  return { steps: floats(...steps), times: floats(...times), values: floats(...values), next };
}

describe("an axis", () => {
  const logged = points([10, 20], [1005, 1010], [1, 2]);

  it("is step, clock time or time since the start of the run", () => {
    expect([...toCurve(logged, "step", 1000).xs]).toEqual([10, 20]);
    expect([...toCurve(logged, "time", 1000).xs]).toEqual([1005, 1010]);
    expect([...toCurve(logged, "relative", 1000).xs]).toEqual([5, 10]);
  });

  it("is sorted, also for a restarted training", () => {
    const restarted = toCurve(points([1, 2, 3, 2, 3], [1, 2, 3, 4, 5], [10, 20, 30, 21, 31]), "step", 0);
    expect([...restarted.xs]).toEqual([1, 2, 2, 3, 3]);
    expect([...restarted.ys]).toEqual([10, 20, 21, 30, 31]);
  });

  it("is the index of the points if no steps were logged", () => {
    expect([...toCurve(points([NaN, NaN, NaN], [1, 2, 3], [1, 2, 3], 101), "step", 0).xs]).toEqual([0, 50, 100]);
  });
});

describe("a line", () => {
  it("keeps its raw values behind the smoothed ones", () => {
    const curve = { xs: floats(0, 1, 2), ys: floats(0, 10, 0) };
    const style = { key: "a", label: "a", color: "#000" };
    expect(toLine(curve, 0, style).raw).toBeUndefined();
    expect([...toLine(curve, 0.5, style).raw!]).toEqual([0, 10, 0]);
  });
});

describe("a group", () => {
  it("has mean, minimum and maximum of its curves", () => {
    const group = mean([
      { xs: floats(0, 10), ys: floats(0, 10) },
      { xs: floats(0, 5, 10), ys: floats(2, 2, 2) },
    ]);
    expect([...group.xs]).toEqual([0, 5, 10]);
    expect([...group.ys]).toEqual([1, 3.5, 6]);
    expect([...group.low]).toEqual([0, 2, 2]);
    expect([...group.high]).toEqual([2, 5, 10]);
  });

  it("uses each curve only within its own range", () => {
    const group = mean([
      { xs: floats(0, 1), ys: floats(1, 1) },
      { xs: floats(0, 1, 2), ys: floats(3, 3, 9) },
    ]);
    expect([...group.ys]).toEqual([2, 2, 9]);
  });

  it("has at most as many points as a chart is wide", () => {
    const long = (shift: number) => ({
      xs: Float64Array.from({ length: 5000 }, (_, i) => i + shift),
      ys: new Float64Array(5000).fill(shift),
    });
    const group = mean([long(0), long(0.5)]);
    expect(group.xs.length).toBe(1000);
    expect(group.ys[500]).toBeCloseTo(0.25, 9);
  });

  it("of no curves is empty", () => {
    expect(mean([]).xs.length).toBe(0);
  });
});

describe("the nearest point", () => {
  it("is found on either side and at the ends", () => {
    const xs = floats(0, 10, 20);
    expect([-5, 4, 5, 6, 16, 99].map((x) => nearest(xs, x))).toEqual([0, 0, 0, 1, 2, 2]);
    expect(nearest(floats(), 1)).toBe(-1);
  });
});
