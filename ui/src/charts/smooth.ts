/** A running mean in which what is further back counts less, without the pull towards zero at the beginning. */

/**
 * `weight` from 0 (nothing) to below 1. Distances count: between points as far apart as the usual ones the past keeps
 * `weight` of its say, over a wider gap accordingly less. A chart that was thinned out unevenly, or a metric that was
 * logged in bursts, is so smoothed alike everywhere.
 */
export function smooth(xs: Float64Array, values: Float64Array, weight: number): Float64Array {
  if (weight <= 0 || values.length < 3) return values;
  const usual = usualGap(xs);
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

/** The middle one of all gaps: a night without a point must not count as a gap like the others. */
function usualGap(xs: Float64Array): number {
  const gaps = new Float64Array(xs.length - 1);
  for (let i = 0; i < gaps.length; i++) gaps[i] = xs[i + 1]! - xs[i]!;
  const rising = gaps.filter((gap) => gap > 0).sort();
  return rising[rising.length >> 1] ?? 1;
}
