// Charts of system metrics, with one line per node and device.

import type { Series } from "../../api/types";
import { number } from "../../format/number";

export interface SystemChart {
  title: string;
  unit: (value: number) => string;
  bounds: [number, number] | null; // of the axis, if fixed
  lines: { name: string; label: string }[];
}

interface Measure {
  title: string;
  label?: string; // distinguishes lines of the same chart
  unit: (value: number) => string;
  bounds: [number, number] | null;
}

const percent = (value: number) => `${number(Math.round(value * 10) / 10)} %`;
const rate = (value: number) => `${number(Number(value.toPrecision(3)))} MB/s`;
const gigabytes = (value: number) => `${number(Number(value.toPrecision(3)))} GB`;

const MEASURES: Record<string, Measure> = {
  "gpu": { title: "GPU", unit: percent, bounds: [0, 100] },
  "gpu memory": { title: "GPU memory", unit: percent, bounds: [0, 100] },
  "gpu memory_gb": { title: "GPU memory (GB)", unit: gigabytes, bounds: null },
  "gpu power": { title: "GPU power", unit: (value) => `${number(Math.round(value))} W`, bounds: null },
  "gpu temperature": { title: "GPU temperature", unit: (value) => `${number(value)} °C`, bounds: null },
  "cpu": { title: "CPU", unit: percent, bounds: [0, 100] },
  "memory": { title: "Memory", unit: percent, bounds: [0, 100] },
  "memory_gb": { title: "Memory (GB)", unit: gigabytes, bounds: null },
  "disk": { title: "Disk usage", unit: percent, bounds: [0, 100] },
  "disk_read": { title: "Disk traffic", label: "read", unit: rate, bounds: null },
  "disk_write": { title: "Disk traffic", label: "written", unit: rate, bounds: null },
  "network_in": { title: "Network", label: "received", unit: rate, bounds: null },
  "network_out": { title: "Network", label: "sent", unit: rate, bounds: null },
};
const ORDER = Object.values(MEASURES).map((measure) => measure.title);

/** Series names are `system/<node>/<measure>`; those of GPUs start with the device, as in `gpu0_memory`. */
export function systemCharts(series: Series[]): SystemChart[] {
  const charts = new Map<string, SystemChart>();
  const nodes = new Set(series.map(({ name }) => name.split("/")[1]));
  for (const { name } of series) {
    const [, node = "", ...rest] = name.split("/");
    const gpu = /^gpu(\d+)(?:_(.*))?$/.exec(rest.join("/"));
    const measureName = gpu ? `gpu ${gpu[2] ?? ""}`.trim() : rest.join("/");
    const measure = Object.hasOwn(MEASURES, measureName) ? MEASURES[measureName]! : unknownMeasure(measureName);
    const { title, unit, bounds, label } = measure;
    const chart = charts.get(title) ?? { title, unit, bounds, lines: [] };
    charts.set(title, chart);
    const labels = [nodes.size > 1 ? node : "", gpu ? `GPU ${gpu[1]}` : "", label ?? ""].filter(Boolean);
    chart.lines.push({ name, label: labels.join(" · ") || node });
  }
  return [...charts.values()].sort((a, b) => orderOf(a.title) - orderOf(b.title));
}

function unknownMeasure(name: string): Measure {
  return { title: name.replaceAll("_", " "), unit: number, bounds: null };
}

function orderOf(title: string): number {
  const index = ORDER.indexOf(title);
  return index < 0 ? ORDER.length : index;
}
