// Groups series by the part of their name before the last slash.

import { isNumeric, type Series } from "../../api/types";

export interface Section {
  name: string;
  all: number;
  singles: Series[]; // a single number
  charts: Series[];
  values: Series[]; // everything else
}

export function groupSeries(allSeries: Series[], filter: string): Section[] {
  const text = filter.trim().toLowerCase();
  const sections = new Map<string, Section>();
  for (const series of allSeries) {
    if (text && !series.name.toLowerCase().includes(text)) continue;
    const slash = series.name.lastIndexOf("/");
    const name = slash < 0 ? "" : series.name.slice(0, slash);
    const section = sections.get(name) ?? { name, all: 0, singles: [], charts: [], values: [] };
    sections.set(name, section);
    section.all++;
    section[categoryOf(series)].push(series);
  }
  // sections with charts first
  return [...sections.values()].sort(
    (a, b) =>
      Number(b.charts.length > 0) - Number(a.charts.length > 0) ||
      a.name.localeCompare(b.name, "en", { numeric: true }),
  );
}

function categoryOf(series: Series): "singles" | "charts" | "values" {
  if (series.kind !== "scalar") return "values";
  if (series.count <= 1) return "singles";
  return typeof series.last === "string" && !isNumeric(series.last) && series.min === null ? "values" : "charts";
}
