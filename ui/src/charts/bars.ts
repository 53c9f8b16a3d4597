// Bars of single values, and the first value of a line that is not finite.

import type { Line } from "./lines";

/** The range of the bars: the finite values and zero, from which they start. */
export function barExtent(values: readonly number[]): [number, number] {
  const finite = values.filter(Number.isFinite);
  const low = Math.min(0, ...finite);
  const high = Math.max(0, ...finite);
  return low === high ? [0, 1] : [low, high];
}

/** True if no line has a course: each is a single value. */
export function areSingleValues(lines: readonly Line[]): boolean {
  return lines.length > 0 && lines.every((line) => line.xs.length === 1);
}

/** The first NaN or infinity of the lines, by position. Missing values of means and of gaps do not count. */
export function firstNonFinite(lines: readonly Line[]): { x: number; value: number } | null {
  let first: { x: number; value: number } | null = null;
  for (const line of lines) {
    if (line.members || line.gaps) continue;
    const values = line.raw ?? line.ys;
    const i = values.findIndex((value) => !Number.isFinite(value));
    if (i >= 0 && (first === null || line.xs[i]! < first.x)) first = { x: line.xs[i]!, value: values[i]! };
  }
  return first;
}
