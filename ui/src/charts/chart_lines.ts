// Converts cached points to the lines of a chart.

import { seriesKey } from "./point_cache.svelte";
import { toCurve, toLine, mean, type Axis, type Curve, type Line } from "./lines";
import type { Points } from "./points";
import { smooth } from "./smooth";

/** A metric of one run. Series with the same `group` are drawn as one line if the chart is grouped. */
export interface ChartSeries {
  runId: string;
  name: string;
  label: string;
  color: string; // a CSS variable such as "--series-3"
  origin: number; // when its run started
  group?: string;
}

export interface LineOptions {
  axis: Axis;
  smoothing: number;
  grouped: boolean;
  paint: (token: string) => string;
}

export function chartLines(series: ChartSeries[], points: ReadonlyMap<string, Points>, options: LineOptions): Line[] {
  const curves = series.flatMap((item) => {
    const seriesPoints = points.get(seriesKey(item));
    return seriesPoints ? [{ item, curve: toCurve(seriesPoints, options.axis, item.origin) }] : [];
  });
  if (!options.grouped) {
    return curves.map(({ item, curve }) => {
      const style = { key: seriesKey(item), label: item.label, color: options.paint(item.color) };
      return toLine(curve, options.smoothing, style);
    });
  }
  const groups = new Map<string, { item: ChartSeries; curves: Curve[] }>();
  for (const { item, curve } of curves) {
    const name = item.group ?? item.label;
    const group = groups.get(name);
    if (group) group.curves.push(curve);
    else groups.set(name, { item, curves: [curve] });
  }
  return [...groups].map(([name, group]) => groupLine(name, group, options));
}

/** The lines as CSV, one column each. */
export function toCsv(lines: Line[], axis: Axis): string {
  const cell = (text: string) => (/[",\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);
  const xs = [...new Set(lines.flatMap((line) => [...line.xs]))].sort((a, b) => a - b);
  const columns = lines.map((line) => new Map([...line.xs].map((x, i) => [x, (line.raw ?? line.ys)[i]!])));
  const rows = xs.map((x) => [x, ...columns.map((column) => column.get(x) ?? "")].join(","));
  return [[axis, ...lines.map((line) => line.label)].map(cell).join(","), ...rows, ""].join("\n");
}

function groupLine(name: string, { item, curves }: { item: ChartSeries; curves: Curve[] }, options: LineOptions): Line {
  const { xs, ys, low, high } = mean(curves);
  return {
    key: `group\n${name}`,
    label: `${name} (${curves.length})`,
    color: options.paint(item.color),
    xs,
    ys: smooth(xs, ys, options.smoothing),
    members: curves.length,
    ...(curves.length > 1 ? { low, high } : {}),
  };
}
