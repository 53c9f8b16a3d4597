import { describe, expect, it } from "vitest";
import { decodeCharts, decodePoints } from "./points";

const NO_STEP = -(2n ** 63n);

function block(steps: bigint[], times: number[], values: number[], next: bigint): ArrayBuffer {
  const count = steps.length;
  const buffer = new ArrayBuffer(16 + 24 * count);
  const view = new DataView(buffer);
  [..."RYP1"].forEach((character, i) => view.setUint8(i, character.charCodeAt(0)));
  view.setUint32(4, count, true);
  view.setBigUint64(8, next, true);
  steps.forEach((step, i) => view.setBigInt64(16 + 8 * i, step, true));
  times.forEach((time, i) => view.setFloat64(16 + 8 * (count + i), time, true));
  values.forEach((value, i) => view.setFloat64(16 + 8 * (2 * count + i), value, true));
  return buffer;
}

function response(blocks: ArrayBuffer[]): ArrayBuffer {
  const bytes = new Uint8Array(4 + blocks.reduce((sum, b) => sum + 4 + b.byteLength, 0));
  const view = new DataView(bytes.buffer);
  view.setUint32(0, blocks.length, true);
  let offset = 4;
  for (const b of blocks) {
    view.setUint32(offset, b.byteLength, true);
    bytes.set(new Uint8Array(b), offset + 4);
    offset += 4 + b.byteLength;
  }
  return bytes.buffer;
}

describe("points on the wire", () => {
  it("decode large, negative and missing steps", () => {
    const decoded = decodePoints(block([0n, -7n, 5_000_000_000n, NO_STEP], [1, 2, 3, 4], [0.5, NaN, Infinity, -1], 9n));
    expect([...decoded.steps]).toEqual([0, -7, 5_000_000_000, NaN]);
    expect([...decoded.times]).toEqual([1, 2, 3, 4]);
    expect([...decoded.values]).toEqual([0.5, NaN, Infinity, -1]);
    expect(decoded.next).toBe(9);
  });

  it("decode several series", () => {
    const decoded = decodeCharts(response([block([1n], [1], [2], 1n), block([], [], [], 0n), block([3n], [5], [7], 4n)]));
    expect(decoded.map((points) => [...points.values])).toEqual([[2], [], [7]]);
    expect(decoded.map((points) => points.next)).toEqual([1, 0, 4]);
  });

  it("reject truncated and unrelated data", () => {
    expect(() => decodePoints(block([1n], [1], [2], 1n).slice(0, 30))).toThrow("truncated");
    expect(() => decodePoints(new TextEncoder().encode("<html>not found</html>").buffer)).toThrow("expected metric points");
  });
});
