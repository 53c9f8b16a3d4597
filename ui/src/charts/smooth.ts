/** Exponential moving average without the bias towards zero at the start. */

/**
 * `weight` is between 0 (no smoothing) and 1. The past keeps `weight` of its influence over a gap of typical size and
 * less over a wider one, so that downsampled charts and metrics logged in bursts are smoothed evenly.
 */
export function smooth(xs: Float64Array, values: Float64Array, weight: number): Float64Array {
  if (weight <= 0 || values.length < 3) return values;
  const typicalGap = medianGap(xs);
  const result = new Float64Array(values.length);
  let sum = 0;
  let total = 0;
  let lastX = NaN;
  for (let i = 0; i < values.length; i++) {
    const value = values[i]!;
    if (!Number.isFinite(value)) {
      result[i] = value; // gaps stay gaps and do not affect later values
      continue;
    }
    const decay = Number.isNaN(lastX) ? 0 : weight ** (Math.max(0, xs[i]! - lastX) / typicalGap);
    sum = sum * decay + value;
    total = total * decay + 1;
    result[i] = sum / total;
    lastX = xs[i]!;
  }
  return result;
}

/** The median, so that one long pause does not distort the result. */
function medianGap(xs: Float64Array): number {
  const gaps = new Float64Array(xs.length - 1);
  for (let i = 0; i < gaps.length; i++) gaps[i] = xs[i + 1]! - xs[i]!;
  const sorted = gaps.filter((gap) => gap > 0).sort();
  return sorted[sorted.length >> 1] ?? 1;
}
