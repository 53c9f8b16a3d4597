/** Points of metrics as the yard sends them: little-endian columns of 64 bits after a short head ("RYP1"). */

export interface Points {
  steps: Float64Array; // NaN where none was given
  times: Float64Array; // seconds since 1970
  values: Float64Array; // NaN for what is not a number
  next: number; // the cursor to ask on from
}

const HEAD_BYTES = 16;
const MAGIC = 0x31505952; // "RYP1", little-endian
const LOWEST_HALF = -(2 ** 31); // the upper half of the step that says "none"

export function noPoints(next = 0): Points {
  return { steps: new Float64Array(), times: new Float64Array(), values: new Float64Array(), next };
}

export function decodePoints(buffer: ArrayBuffer, begin = 0, end = buffer.byteLength): Points {
  const view = new DataView(buffer, begin, end - begin);
  if (view.byteLength < HEAD_BYTES || view.getUint32(0, true) !== MAGIC) {
    throw new Error("these bytes are not points of a metric");
  }
  const count = view.getUint32(4, true);
  if (view.byteLength !== HEAD_BYTES + 24 * count) {
    throw new Error(`the points of a metric arrived cut short: ${view.byteLength} bytes for ${count} points`);
  }
  const column = (number: number) => {
    const from = begin + HEAD_BYTES + 8 * count * number;
    // copied out: in an answer of several series a column does not begin at a multiple of 8, which typed arrays need
    return buffer.slice(from, from + 8 * count);
  };
  return {
    steps: wholeNumbers(column(0)),
    times: new Float64Array(column(1)),
    values: new Float64Array(column(2)),
    next: Number(view.getBigUint64(8, true)),
  };
}

/** The answer of `POST /api/charts`: how many series, then each with its length before it. */
export function decodeCharts(buffer: ArrayBuffer): Points[] {
  const view = new DataView(buffer);
  const found: Points[] = [];
  let at = 4;
  for (let left = view.getUint32(0, true); left > 0; left--) {
    const length = view.getUint32(at, true);
    found.push(decodePoints(buffer, at + 4, at + 4 + length));
    at += 4 + length;
  }
  return found;
}

/** 64-bit whole numbers as floats, by halves: a BigInt for each point would be the slowest part of a chart. */
function wholeNumbers(bytes: ArrayBuffer): Float64Array {
  const low = new Uint32Array(bytes);
  const high = new Int32Array(bytes);
  const found = new Float64Array(bytes.byteLength / 8);
  for (let i = 0; i < found.length; i++) {
    const upper = high[2 * i + 1]!;
    const lower = low[2 * i]!;
    found[i] = upper === LOWEST_HALF && lower === 0 ? NaN : upper * 2 ** 32 + lower;
  }
  return found;
}
