import { describe, expect, it } from "vitest";
import { decodeCharts, decodePoints } from "./points";

const NO_STEP = -(2n ** 63n);

function block(steps: bigint[], times: number[], values: number[], next: bigint): ArrayBuffer {
  const count = steps.length;
  const buffer = new ArrayBuffer(16 + 24 * count);
  const view = new DataView(buffer);
  [..."RYP1"].forEach((letter, i) => view.setUint8(i, letter.charCodeAt(0)));
  view.setUint32(4, count, true);
  view.setBigUint64(8, next, true);
  steps.forEach((step, i) => view.setBigInt64(16 + 8 * i, step, true));
  times.forEach((time, i) => view.setFloat64(16 + 8 * (count + i), time, true));
  values.forEach((value, i) => view.setFloat64(16 + 8 * (2 * count + i), value, true));
  return buffer;
}

function answer(blocks: ArrayBuffer[]): ArrayBuffer {
  const whole = new Uint8Array(4 + blocks.reduce((sum, b) => sum + 4 + b.byteLength, 0));
  const view = new DataView(whole.buffer);
  view.setUint32(0, blocks.length, true);
  let at = 4;
  for (const b of blocks) {
    view.setUint32(at, b.byteLength, true);
    whole.set(new Uint8Array(b), at + 4);
    at += 4 + b.byteLength;
  }
  return whole.buffer;
}

describe("points on the wire", () => {
  it("come out as they went in, with large and negative steps and none at all", () => {
    const found = decodePoints(block([0n, -7n, 5_000_000_000n, NO_STEP], [1, 2, 3, 4], [0.5, NaN, Infinity, -1], 9n));
    expect([...found.steps]).toEqual([0, -7, 5_000_000_000, NaN]);
    expect([...found.times]).toEqual([1, 2, 3, 4]);
    expect([...found.values]).toEqual([0.5, NaN, Infinity, -1]);
    expect(found.next).toBe(9);
  });

  it("of several series are told apart", () => {
    const found = decodeCharts(answer([block([1n], [1], [2], 1n), block([], [], [], 0n), block([3n], [5], [7], 4n)]));
    expect(found.map((points) => [...points.values])).toEqual([[2], [], [7]]);
    expect(found.map((points) => points.next)).toEqual([1, 0, 4]);
  });

  it("that are cut short or something else are refused", () => {
    expect(() => decodePoints(block([1n], [1], [2], 1n).slice(0, 30))).toThrow("cut short");
    expect(() => decodePoints(new TextEncoder().encode("<html>not found</html>").buffer)).toThrow("not points");
  });
});
