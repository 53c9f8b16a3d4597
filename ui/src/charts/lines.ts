/** Converts points to lines on an axis, and groups of lines to their mean with a band. */

import type { Points } from "./points";
import { smooth } from "./smooth";

export type Axis = "step" | "time" | "relative";

/** A line to draw. `low` and `high` are a band around `ys`; `raw` is drawn pale behind a smoothed line. */
export interface Line {
  key: string;
  label: string;
  color: string;
  xs: Float64Array;
  ys: Float64Array;
  raw?: Float64Array;
  low?: Float64Array;
  high?: Float64Array;
  members?: number;
  dashed?: boolean;
  gaps?: boolean; // NaN means missing and is not marked
}

export interface Curve {
  xs: Float64Array;
  ys: Float64Array;
}

/** A series on an axis; `origin` is the start of its run. Sorted by x, as the search for the nearest point requires. */
export function toCurve(points: Points, axis: Axis, origin: number): Curve {
  const xs =
    axis === "step" ? steps(points) : axis === "time" ? points.times : points.times.map((time) => time - origin);
  for (let i = 1; i < xs.length; i++) {
    if (xs[i]! < xs[i - 1]!) return sortByX(xs, points.values); // several processes, or a restarted training
  }
  return { xs, ys: points.values };
}

/** A line with smoothed values over its raw ones. */
export function toLine(curve: Curve, smoothing: number, style: Pick<Line, "key" | "label" | "color" | "dashed">): Line {
  if (smoothing <= 0) return { ...style, ...curve };
  return { ...style, xs: curve.xs, ys: smooth(curve.xs, curve.ys, smoothing), raw: curve.ys };
}

const MAX_GROUP_POINTS = 1000;

/** The mean, minimum and maximum at each x of the curves that cover it. */
export function mean(curves: Curve[]): Curve & { low: Float64Array; high: Float64Array } {
  const xs = commonAxis(curves);
  const sums = new Float64Array(xs.length);
  const counts = new Uint32Array(xs.length);
  const low = new Float64Array(xs.length).fill(NaN);
  const high = new Float64Array(xs.length).fill(NaN);
  for (const curve of curves) {
    interpolate(curve, xs, (i, value) => {
      sums[i]! += value;
      counts[i]! += 1;
      if (!(low[i]! <= value)) low[i] = value;
      if (!(high[i]! >= value)) high[i] = value;
    });
  }
  return { xs, ys: sums.map((sum, i) => (counts[i] ? sum / counts[i]! : NaN)), low, high };
}

/** The index of the point nearest to `x`; -1 if there are no points. */
export function nearest(xs: Float64Array, x: number): number {
  if (!xs.length) return -1;
  let low = 0;
  let high = xs.length - 1;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (xs[middle]! < x) low = middle + 1;
    else high = middle;
  }
  return low > 0 && x - xs[low - 1]! <= xs[low]! - x ? low - 1 : low;
}

function steps(points: Points): Float64Array {
  if (!points.steps.some(Number.isNaN)) return points.steps;
  // no steps were logged: use the index, scaled to the number of logged points
  const share = points.values.length > 1 ? (points.next - 1) / (points.values.length - 1) : 1;
  return points.steps.map((step, i) => (Number.isNaN(step) ? i * Math.max(share, 1) : step));
}

function sortByX(xs: Float64Array, ys: Float64Array): Curve {
  const order = Uint32Array.from(xs.keys()).sort((a, b) => xs[a]! - xs[b]! || a - b);
  return { xs: Float64Array.from(order, (i) => xs[i]!), ys: Float64Array.from(order, (i) => ys[i]!) };
}

function commonAxis(curves: Curve[]): Float64Array {
  const all = Float64Array.from(new Set(curves.flatMap((curve) => [...curve.xs]))).sort();
  if (all.length <= MAX_GROUP_POINTS) return all;
  const first = all[0]!;
  const last = all[all.length - 1]!;
  return Float64Array.from(
    { length: MAX_GROUP_POINTS },
    (_, i) => first + ((last - first) * i) / (MAX_GROUP_POINTS - 1),
  );
}

/** Calls `emit` with the linearly interpolated values of a curve at `xs`; not outside its range. */
function interpolate({ xs: known, ys }: Curve, xs: Float64Array, emit: (i: number, value: number) => void): void {
  if (!known.length) return;
  let left = 0;
  for (let i = 0; i < xs.length; i++) {
    const x = xs[i]!;
    if (x < known[0]! || x > known[known.length - 1]!) continue;
    while (left < known.length - 1 && known[left + 1]! <= x) left++;
    const gap = left < known.length - 1 ? known[left + 1]! - known[left]! : 0;
    const share = gap > 0 ? (x - known[left]!) / gap : 0;
    const value = share > 0 ? ys[left]! + share * (ys[left + 1]! - ys[left]!) : ys[left]!;
    if (Number.isFinite(value)) emit(i, value);
  }
}
