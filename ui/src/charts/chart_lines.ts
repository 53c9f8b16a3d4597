// From what a chart holds to what it draws.

import { keyOf } from "./point_cache.svelte";
import { curveOf, lineOf, mean, type Axis, type Curve, type Line } from "./lines";
import type { Points } from "./points";
import { smooth } from "./smooth";

/** One line to be: a metric of a run. Lines with the same `group` become one where charts are grouped. */
export interface Charted {
  runId: string;
  name: string;
  label: string;
  colour: string; // a token such as "--series-3"
  origin: number; // when its run began
  group?: string;
}

export interface Drawing {
  axis: Axis;
  smoothing: number;
  grouped: boolean;
  paint: (token: string) => string;
}

export function chartLines(series: Charted[], held: ReadonlyMap<string, Points>, drawing: Drawing): Line[] {
  const curves = series.flatMap((one) => {
    const points = held.get(keyOf(one));
    return points ? [{ one, curve: curveOf(points, drawing.axis, one.origin) }] : [];
  });
  if (!drawing.grouped) {
    return curves.map(({ one, curve }) => {
      const look = { key: keyOf(one), label: one.label, colour: drawing.paint(one.colour) };
      return lineOf(curve, drawing.smoothing, look);
    });
  }
  const groups = new Map<string, { one: Charted; curves: Curve[] }>();
  for (const { one, curve } of curves) {
    const name = one.group ?? one.label;
    const group = groups.get(name);
    if (group) group.curves.push(curve);
    else groups.set(name, { one, curves: [curve] });
  }
  return [...groups].map(([name, group]) => groupLine(name, group, drawing));
}

/** The lines as text, one column each: for a spreadsheet. */
export function asCsv(lines: Line[], axis: Axis): string {
  const cell = (text: string) => (/[",\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);
  const places = [...new Set(lines.flatMap((line) => [...line.xs]))].sort((a, b) => a - b);
  const columns = lines.map((line) => new Map([...line.xs].map((x, i) => [x, (line.raw ?? line.ys)[i]!])));
  const rows = places.map((x) => [x, ...columns.map((column) => column.get(x) ?? "")].join(","));
  return [[axis, ...lines.map((line) => line.label)].map(cell).join(","), ...rows, ""].join("\n");
}

function groupLine(name: string, { one, curves }: { one: Charted; curves: Curve[] }, drawing: Drawing): Line {
  const { xs, ys, low, high } = mean(curves);
  return {
    key: `group\n${name}`,
    label: `${name} (${curves.length})`,
    colour: drawing.paint(one.colour),
    xs,
    ys: smooth(xs, ys, drawing.smoothing),
    members: curves.length,
    ...(curves.length > 1 ? { low, high } : {}),
  };
}
