// System metrics by what they measure: one chart each, with a line for every node and device.

import type { Series } from "../api/shapes";
import { bytes, number } from "../format/number";

export interface SystemChart {
  title: string;
  unit: (value: number) => string;
  lines: { name: string; label: string }[];
}

interface Known {
  title: string;
  unit: (value: number) => string;
}

const percent = (value: number) => `${number(Math.round(value * 10) / 10)} %`;
const perSecond = (value: number) => `${bytes(Math.round(value))}/s`;

/** `system/<node>/<measure>`; a measure may name its device first, as in `gpu0/memory`. */
export function systemCharts(series: Series[]): SystemChart[] {
  const charts = new Map<string, SystemChart>();
  for (const { name } of series) {
    const [, node = "", ...rest] = name.split("/");
    const measure = rest.join("/");
    const device = /^(gpu)[_/ -]?(\d+)[_/ .-](.+)$/.exec(measure);
    const plain = device ? `gpu ${device[3]}` : measure;
    const { title, unit } = lookOf(plain);
    const chart = charts.get(title) ?? { title, unit, lines: [] };
    charts.set(title, chart);
    chart.lines.push({ name, label: [node, device ? `GPU ${device[2]}` : ""].filter(Boolean).join(" · ") });
  }
  return [...charts.values()].sort((a, b) => rank(a.title) - rank(b.title) || a.title.localeCompare(b.title));
}

function lookOf(measure: string): Known {
  const text = measure.replace(/[_/]/g, " ");
  const gpu = text.startsWith("gpu");
  const of = gpu ? "GPU " : "";
  if (/percent|%|utili[sz]ation|^cpu$|gpu$/.test(text)) {
    if (/memory/.test(text)) return { title: `${of || ""}Memory in use`.replace("GPU Memory", "GPU memory"), unit: percent };
    return { title: gpu ? "GPU" : /disk/.test(text) ? "Disk in use" : "CPU", unit: percent };
  }
  if (/power|watt/.test(text)) return { title: "GPU power", unit: (value) => `${number(value)} W` };
  if (/temp/.test(text)) return { title: "GPU temperature", unit: (value) => `${number(value)} °C` };
  if (/_gb|\bgb\b/.test(text)) return { title: worded(text.replace(/\bgb\b/, "")), unit: (value) => `${number(value)} GB` };
  if (/memory|rss/.test(text)) return { title: gpu ? "GPU memory" : "Memory", unit: (value) => bytes(Math.round(value)) };
  if (/net|disk|read|write|sent|received/.test(text)) return { title: worded(text), unit: perSecond };
  return { title: worded(text), unit: number };
}

const FIRST = ["GPU", "GPU memory", "CPU", "Memory"];

function rank(title: string): number {
  const at = FIRST.findIndex((start) => title === start);
  return at < 0 ? FIRST.length : at;
}

function worded(text: string): string {
  const tidy = text.replace(/\s+/g, " ").trim();
  return tidy.charAt(0).toUpperCase() + tidy.slice(1);
}
