/** New points behind the old ones, and no more of them than a chart can show. */

import type { Points } from "./points";

/** What came after a cursor, appended; once there are twice as many as wanted they are thinned out. */
export function append(held: Points, coming: Points, most: number): Points {
  const joined: Points = {
    steps: joinColumns(held.steps, coming.steps),
    times: joinColumns(held.times, coming.times),
    values: joinColumns(held.values, coming.values),
    next: coming.next,
  };
  // not at every append: thinning what was thinned already, again and again, would wear the old part away
  return joined.values.length > 2 * most ? thin(joined, most) : joined;
}

/** At most `most` points: the least and the greatest of each stretch, in their order, and the last one. */
export function thin(points: Points, most: number): Points {
  const chosen = extremes(points.values, most);
  if (chosen.length === points.values.length) return points;
  return {
    steps: chosen.map((i) => points.steps[i]!),
    times: chosen.map((i) => points.times[i]!),
    values: chosen.map((i) => points.values[i]!),
    next: points.next,
  };
}

function joinColumns(a: Float64Array, b: Float64Array): Float64Array {
  const joined = new Float64Array(a.length + b.length);
  joined.set(a);
  joined.set(b, a.length);
  return joined;
}

function extremes(values: Float64Array, most: number): Float64Array {
  const count = values.length;
  if (count <= Math.max(most, 2)) return Float64Array.from(values.keys());
  const stretches = Math.max(1, Math.floor(most / 2));
  const chosen: number[] = [];
  for (let stretch = 0; stretch < stretches; stretch++) {
    const begin = Math.floor((stretch * count) / stretches);
    const end = Math.floor(((stretch + 1) * count) / stretches);
    let least = -1;
    let greatest = -1;
    for (let i = begin; i < end; i++) {
      const value = values[i]!;
      if (Number.isNaN(value)) continue;
      if (least < 0 || value < values[least]!) least = i;
      if (greatest < 0 || value >= values[greatest]!) greatest = i;
    }
    if (least < 0) chosen.push(begin); // a stretch without a number stays visible as a gap
    else if (least === greatest) chosen.push(least);
    else chosen.push(Math.min(least, greatest), Math.max(least, greatest));
  }
  if (chosen[chosen.length - 1] !== count - 1) chosen[chosen.length - 1] = count - 1;
  return Float64Array.from(chosen);
}
