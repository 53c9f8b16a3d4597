// Metrics by what stands before the slash in their names, each kind in its place.

import type { Series } from "../../api/types";

export interface Section {
  name: string;
  all: number;
  singles: Series[]; // one number: no line to draw
  charts: Series[];
  values: Series[]; // everything that is no number
}

export function sectionsOf(series: Series[], wanted: string): Section[] {
  const word = wanted.trim().toLowerCase();
  const sections = new Map<string, Section>();
  for (const one of series) {
    if (word && !one.name.toLowerCase().includes(word)) continue;
    const cut = one.name.lastIndexOf("/");
    const name = cut < 0 ? "" : one.name.slice(0, cut);
    const section = sections.get(name) ?? { name, all: 0, singles: [], charts: [], values: [] };
    sections.set(name, section);
    section.all++;
    section[placeOf(one)].push(one);
  }
  // charts are what people come for: parts that have some are on top
  return [...sections.values()].sort(
    (a, b) =>
      Number(b.charts.length > 0) - Number(a.charts.length > 0) ||
      a.name.localeCompare(b.name, "en", { numeric: true }),
  );
}

function placeOf(one: Series): "singles" | "charts" | "values" {
  if (one.kind !== "scalar") return "values";
  if (one.count <= 1) return "singles";
  return typeof one.last === "string" && one.min === null ? "values" : "charts";
}
