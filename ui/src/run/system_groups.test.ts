import { expect, it } from "vitest";
import { systemCharts } from "./system_groups";

const series = (...names: string[]) =>
  names.map((name) => ({ name, kind: "scalar", count: 3, last: 1, min: 0, max: 1 }));

it("what is measured on several nodes and devices is one chart", () => {
  const charts = systemCharts(
    series("system/node-0/cpu", "system/node-1/cpu", "system/node-0/memory", "system/node-0/gpu0/memory", "system/node-0/gpu1/memory"),
  );
  expect(charts.map((chart) => [chart.title, chart.lines.map((line) => line.label)])).toEqual([
    ["GPU memory", ["node-0 · GPU 0", "node-0 · GPU 1"]],
    ["CPU", ["node-0", "node-1"]],
    ["Memory", ["node-0"]],
  ]);
});

it("values have their units", () => {
  const unit = (name: string, value: number) => systemCharts(series(`system/n/${name}`))[0]!.unit(value);
  expect(unit("cpu", 93.27)).toBe("93.3 %");
  expect(unit("memory", 2e9)).toBe("2.0 GB");
  expect(unit("network_received", 1500)).toBe("1.5 kB/s");
  expect(unit("something_new", 3)).toBe("3");
});
