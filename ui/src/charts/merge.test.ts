import { describe, expect, it } from "vitest";
import { append, thin } from "./merge";
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
  it("go behind the ones that are there, and the cursor moves on", () => {
    const both = append(points([1, 2]), points([3], 2), 100);
    expect([...both.values]).toEqual([1, 2, 3]);
    expect([...both.steps]).toEqual([0, 1, 2]);
    expect(both.next).toBe(3);
  });

  it("change nothing when there are none", () => {
    expect([...append(points([1, 2]), noPoints(2), 100).values]).toEqual([1, 2]);
  });

  it("never make a chart hold more than twice what it shows", () => {
    let held = noPoints();
    for (let batch = 0; batch < 200; batch++) {
      held = append(held, points(Array.from({ length: 50 }, (_, i) => Math.sin(batch * 50 + i)), batch * 50), 400);
      expect(held.values.length).toBeLessThanOrEqual(800);
    }
    expect(held.next).toBe(10_000);
    expect(held.steps[held.steps.length - 1]).toBe(9_999);
  });
});

describe("thinning out", () => {
  it("keeps every spike and the last point", () => {
    const values = Array.from({ length: 100_000 }, () => 0);
    values[33_333] = 50;
    values[66_667] = -50;
    values[99_999] = 3;
    const few = thin(points(values), 1000);
    expect(few.values.length).toBeLessThanOrEqual(1000);
    expect(Math.max(...few.values)).toBe(50);
    expect(Math.min(...few.values)).toBe(-50);
    expect(few.values[few.values.length - 1]).toBe(3);
    expect([...few.steps]).toEqual([...few.steps].sort((a, b) => a - b));
  });

  it("leaves a short series as it is, and a stretch without numbers as a gap", () => {
    const short = points([1, NaN, 3]);
    expect(thin(short, 10)).toBe(short);
    expect([...thin(points([1, 2, NaN, NaN, 5, 6]), 4).values].some(Number.isNaN)).toBe(false);
    expect([...thin(points([1, 2, NaN, NaN, NaN, NaN, 5, 6]), 6).values].some(Number.isNaN)).toBe(true);
  });
});
