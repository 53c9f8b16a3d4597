/** A running mean in which what is further back counts less, without the pull towards zero at the beginning. */

/**
 * `weight` from 0 (nothing) to below 1. Distances count: between points as far apart as the usual ones the past keeps
 * `weight` of its say, over a wider gap accordingly less. A chart that was thinned out unevenly, or a metric that was
 * logged in bursts, is so smoothed alike everywhere.
 */
export function smooth(xs: Float64Array, values: Float64Array, weight: number): Float64Array {
  if (weight <= 0 || values.length < 3) return values;
  const usual = (xs[xs.length - 1]! - xs[0]!) / (xs.length - 1) || 1;
  const result = new Float64Array(values.length);
  let sum = 0;
  let say = 0;
  let lastX = NaN;
  for (let i = 0; i < values.length; i++) {
    const value = values[i]!;
    if (!Number.isFinite(value)) {
      result[i] = value; // a gap stays one, and does not spoil what follows
      continue;
    }
    const kept = Number.isNaN(lastX) ? 0 : weight ** (Math.max(0, xs[i]! - lastX) / usual);
    sum = sum * kept + value;
    say = say * kept + 1;
    result[i] = sum / say;
    lastX = xs[i]!;
  }
  return result;
}
