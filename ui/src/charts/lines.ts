/** From points to lines on an axis, and to a mean with its band where lines are grouped. */

import type { Points } from "./points";
import { smooth } from "./smooth";

export type Axis = "step" | "time" | "relative";

/** What a plot draws. `low` and `high` are a band around `ys`; `raw` is drawn pale behind a smoothed line. */
export interface Line {
  key: string;
  label: string;
  colour: string;
  xs: Float64Array;
  ys: Float64Array;
  raw?: Float64Array;
  low?: Float64Array;
  high?: Float64Array;
  members?: number;
  dashed?: boolean;
  gaps?: boolean; // what is not a number is nothing at all, and no event to be marked
}

export interface Curve {
  xs: Float64Array;
  ys: Float64Array;
}

/** A series on an axis; `origin` is when its run began. In rising order, as a search for the nearest point needs it. */
export function curveOf(points: Points, axis: Axis, origin: number): Curve {
  const xs =
    axis === "step" ? steps(points) : axis === "time" ? points.times : points.times.map((time) => time - origin);
  for (let i = 1; i < xs.length; i++) {
    if (xs[i]! < xs[i - 1]!) return inOrder(xs, points.values); // several processes, or a training begun again
  }
  return { xs, ys: points.values };
}

/** The curve with its smoothed values, drawn over its raw ones. */
export function lineOf(curve: Curve, smoothing: number, look: Pick<Line, "key" | "label" | "colour" | "dashed">): Line {
  if (smoothing <= 0) return { ...look, ...curve };
  return { ...look, xs: curve.xs, ys: smooth(curve.xs, curve.ys, smoothing), raw: curve.ys };
}

const MOST_OF_A_GROUP = 1000;

/** Curves as one: at each place the mean, the least and the greatest of those that reach there. */
export function mean(curves: Curve[]): Curve & { low: Float64Array; high: Float64Array } {
  const xs = commonAxis(curves);
  const sums = new Float64Array(xs.length);
  const counts = new Uint32Array(xs.length);
  const low = new Float64Array(xs.length).fill(NaN);
  const high = new Float64Array(xs.length).fill(NaN);
  for (const curve of curves) {
    along(curve, xs, (i, value) => {
      sums[i]! += value;
      counts[i]! += 1;
      if (!(low[i]! <= value)) low[i] = value;
      if (!(high[i]! >= value)) high[i] = value;
    });
  }
  return { xs, ys: sums.map((sum, i) => (counts[i] ? sum / counts[i]! : NaN)), low, high };
}

/** The index of the point nearest to `x`; -1 when there is none. */
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
  // nobody gave steps: the order of the points is what there is, stretched to as many as were logged
  const share = points.values.length > 1 ? (points.next - 1) / (points.values.length - 1) : 1;
  return points.steps.map((step, i) => (Number.isNaN(step) ? i * Math.max(share, 1) : step));
}

function inOrder(xs: Float64Array, ys: Float64Array): Curve {
  const order = Uint32Array.from(xs.keys()).sort((a, b) => xs[a]! - xs[b]! || a - b);
  return { xs: Float64Array.from(order, (i) => xs[i]!), ys: Float64Array.from(order, (i) => ys[i]!) };
}

function commonAxis(curves: Curve[]): Float64Array {
  const all = Float64Array.from(new Set(curves.flatMap((curve) => [...curve.xs]))).sort();
  if (all.length <= MOST_OF_A_GROUP) return all;
  const first = all[0]!;
  const last = all[all.length - 1]!;
  return Float64Array.from(
    { length: MOST_OF_A_GROUP },
    (_, i) => first + ((last - first) * i) / (MOST_OF_A_GROUP - 1),
  );
}

/** The values of a curve at the places `xs`, between its points on a straight line; nothing before and after it. */
function along({ xs: own, ys }: Curve, xs: Float64Array, tell: (i: number, value: number) => void): void {
  if (!own.length) return;
  let at = 0;
  for (let i = 0; i < xs.length; i++) {
    const x = xs[i]!;
    if (x < own[0]! || x > own[own.length - 1]!) continue;
    while (at < own.length - 1 && own[at + 1]! <= x) at++;
    const gap = at < own.length - 1 ? own[at + 1]! - own[at]! : 0;
    const share = gap > 0 ? (x - own[at]!) / gap : 0;
    const value = share > 0 ? ys[at]! + share * (ys[at + 1]! - ys[at]!) : ys[at]!;
    if (Number.isFinite(value)) tell(i, value);
  }
}
