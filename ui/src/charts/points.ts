/** Metric points in the format of the server: little-endian 64-bit columns after a short header ("RYP1"). */

export interface Points {
  steps: Float64Array; // NaN if none was logged
  times: Float64Array; // seconds since 1970
  values: Float64Array; // may be NaN or infinite
  next: number; // cursor for the next request
}

const HEADER_BYTES = 16;
const MAGIC = 0x31505952; // "RYP1", little-endian
const NO_STEP_HIGH = -(2 ** 31); // upper 32 bits of the value that means "no step"

export function noPoints(next = 0): Points {
  return { steps: new Float64Array(), times: new Float64Array(), values: new Float64Array(), next };
}

export function decodePoints(buffer: ArrayBuffer, begin = 0, end = buffer.byteLength): Points {
  const view = new DataView(buffer, begin, end - begin);
  if (view.byteLength < HEADER_BYTES || view.getUint32(0, true) !== MAGIC) {
    throw new Error("expected metric points, got other data");
  }
  const count = view.getUint32(4, true);
  if (view.byteLength !== HEADER_BYTES + 24 * count) {
    throw new Error(`truncated metric points: got ${view.byteLength} bytes for ${count} points`);
  }
  const column = (index: number) => {
    const from = begin + HEADER_BYTES + 8 * count * index;
    // a copy: with several series, columns are not aligned to 8 bytes as typed arrays require
    return buffer.slice(from, from + 8 * count);
  };
  return {
    steps: integers(column(0)),
    times: new Float64Array(column(1)),
    values: new Float64Array(column(2)),
    next: Number(view.getBigUint64(8, true)),
  };
}

/** The response of `POST /api/charts`: the number of series, then each with its length. */
export function decodeCharts(buffer: ArrayBuffer): Points[] {
  const view = new DataView(buffer);
  const series: Points[] = [];
  let offset = 4;
  for (let remaining = view.getUint32(0, true); remaining > 0; remaining--) {
    const length = view.getUint32(offset, true);
    series.push(decodePoints(buffer, offset + 4, offset + 4 + length));
    offset += 4 + length;
  }
  return series;
}

/** 64-bit integers as floats, from two 32-bit halves: a BigInt per point would dominate the time of a chart. */
function integers(bytes: ArrayBuffer): Float64Array {
  const low = new Uint32Array(bytes);
  const high = new Int32Array(bytes);
  const result = new Float64Array(bytes.byteLength / 8);
  for (let i = 0; i < result.length; i++) {
    const upper = high[2 * i + 1]!;
    const lower = low[2 * i]!;
    result[i] = upper === NO_STEP_HIGH && lower === 0 ? NaN : upper * 2 ** 32 + lower;
  }
  return result;
}
