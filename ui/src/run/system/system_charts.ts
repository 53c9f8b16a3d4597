// What the agents measured, by what it is: one chart each, with a line for every node and device.

import type { Series } from "../../api/types";
import { number } from "../../format/number";

export interface SystemChart {
  title: string;
  unit: (value: number) => string;
  bounds: [number, number] | null; // of the axis, where they are known
  lines: { name: string; label: string }[];
}

interface Measure {
  title: string;
  word?: string; // what tells it from others in the same chart
  unit: (value: number) => string;
  bounds: [number, number] | null;
}

const percent = (value: number) => `${number(Math.round(value * 10) / 10)} %`;
const rate = (value: number) => `${number(Number(value.toPrecision(3)))} MB/s`;
const gigabytes = (value: number) => `${number(Number(value.toPrecision(3)))} GB`;

const MEASURES: Record<string, Measure> = {
  "gpu": { title: "GPU", unit: percent, bounds: [0, 100] },
  "gpu memory": { title: "GPU memory", unit: percent, bounds: [0, 100] },
  "gpu memory_gb": { title: "GPU memory in GB", unit: gigabytes, bounds: null },
  "gpu power": { title: "GPU power", unit: (value) => `${number(Math.round(value))} W`, bounds: null },
  "gpu temperature": { title: "GPU temperature", unit: (value) => `${number(value)} °C`, bounds: null },
  "cpu": { title: "CPU", unit: percent, bounds: [0, 100] },
  "memory": { title: "Memory", unit: percent, bounds: [0, 100] },
  "memory_gb": { title: "Memory in GB", unit: gigabytes, bounds: null },
  "disk": { title: "Disk full", unit: percent, bounds: [0, 100] },
  "disk_read": { title: "Disk traffic", word: "read", unit: rate, bounds: null },
  "disk_write": { title: "Disk traffic", word: "written", unit: rate, bounds: null },
  "network_in": { title: "Network", word: "received", unit: rate, bounds: null },
  "network_out": { title: "Network", word: "sent", unit: rate, bounds: null },
};
const ORDER = Object.values(MEASURES).map((measure) => measure.title);

/** Names are `system/<node>/<measure>`; those of GPUs begin with which one it is, as in `gpu0_memory`. */
export function systemCharts(series: Series[]): SystemChart[] {
  const charts = new Map<string, SystemChart>();
  const nodes = new Set(series.map(({ name }) => name.split("/")[1]));
  for (const { name } of series) {
    const [, node = "", ...rest] = name.split("/");
    const gpu = /^gpu(\d+)(?:_(.*))?$/.exec(rest.join("/"));
    const measured = gpu ? `gpu ${gpu[2] ?? ""}`.trim() : rest.join("/");
    const measure = Object.hasOwn(MEASURES, measured) ? MEASURES[measured]! : unknown(measured);
    const { title, unit, bounds, word } = measure;
    const chart = charts.get(title) ?? { title, unit, bounds, lines: [] };
    charts.set(title, chart);
    const told = [nodes.size > 1 ? node : "", gpu ? `GPU ${gpu[1]}` : "", word ?? ""].filter(Boolean);
    chart.lines.push({ name, label: told.join(" · ") || node });
  }
  return [...charts.values()].sort((a, b) => place(a.title) - place(b.title));
}

function unknown(measured: string): Measure {
  return { title: measured.replaceAll("_", " "), unit: number, bounds: null };
}

function place(title: string): number {
  const at = ORDER.indexOf(title);
  return at < 0 ? ORDER.length : at;
}
