/** Appends new points and limits their number to what a chart can show. */

import type { Points } from "./points";

/** Appends points; downsamples once there are more than twice `limit`. */
export function append(old: Points, added: Points, limit: number): Points {
  const joined: Points = {
    steps: joinColumns(old.steps, added.steps),
    times: joinColumns(old.times, added.times),
    values: joinColumns(old.values, added.values),
    next: added.next,
  };
  // not at every append: repeated downsampling would degrade the old part
  return joined.values.length > 2 * limit ? downsample(joined, limit) : joined;
}

/** About `limit` points: the extremes of each bucket, the start of NaN and infinity in it, and the last point. */
export function downsample(points: Points, limit: number): Points {
  const indices = extremes(points.values, limit);
  if (indices.length === points.values.length) return points;
  return {
    steps: indices.map((i) => points.steps[i]!),
    times: indices.map((i) => points.times[i]!),
    values: indices.map((i) => points.values[i]!),
    next: points.next,
  };
}

function joinColumns(a: Float64Array, b: Float64Array): Float64Array {
  const joined = new Float64Array(a.length + b.length);
  joined.set(a);
  joined.set(b, a.length);
  return joined;
}

function extremes(values: Float64Array, limit: number): Float64Array {
  const count = values.length;
  if (count <= Math.max(limit, 2)) return Float64Array.from(values.keys());
  const buckets = Math.max(1, Math.floor(limit / 2));
  const indices = new Set<number>();
  for (let bucket = 0; bucket < buckets; bucket++) {
    const begin = Math.floor((bucket * count) / buckets);
    const end = Math.floor(((bucket + 1) * count) / buckets);
    let min = -1;
    let max = -1;
    const marked = new Set<number>(); // NaN, infinity and its negative: the first of each in a bucket is shown
    for (let i = begin; i < end; i++) {
      const value = values[i]!;
      if (!Number.isFinite(value)) {
        if (!marked.has(value) && !(i > 0 && Object.is(values[i - 1], value))) indices.add(i);
        marked.add(value);
        continue;
      }
      if (min < 0 || value < values[min]!) min = i;
      if (max < 0 || value >= values[max]!) max = i;
    }
    // a bucket without a number remains visible as a gap
    if (min < 0) indices.add(begin);
    else indices.add(min).add(max);
  }
  indices.add(count - 1);
  return Float64Array.from(indices).sort();
}
