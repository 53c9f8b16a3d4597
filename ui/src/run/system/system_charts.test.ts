import { expect, it } from "vitest";
import { systemCharts } from "./system_charts";

const series = (...names: string[]) =>
  names.map((name) => ({ name, kind: "scalar", count: 3, last: 1, min: 0, max: 1 }));
const charts = (...names: string[]) =>
  systemCharts(series(...names)).map((chart) => [chart.title, chart.lines.map((line) => line.label)]);

it("combines nodes and devices in one chart", () => {
  expect(
    charts("system/node-0/cpu", "system/node-1/cpu", "system/node-0/gpu0_memory", "system/node-0/gpu1_memory"),
  ).toEqual([
    ["GPU memory", ["node-0 · GPU 0", "node-0 · GPU 1"]],
    ["CPU", ["node-0", "node-1"]],
  ]);
});

it("combines both directions, and omits the name of a single node", () => {
  expect(charts("system/local/network_in", "system/local/network_out", "system/local/gpu0", "system/local/odd_one")).toEqual([
    ["GPU", ["GPU 0"]],
    ["Network", ["received", "sent"]],
    ["odd one", ["local"]],
  ]);
});

it("formats values with their units", () => {
  const unit = (name: string, value: number) => systemCharts(series(`system/n/${name}`))[0]!.unit(value);
  expect(unit("cpu", 93.27)).toBe("93.3 %");
  expect(unit("memory_gb", 1.69955)).toBe("1.7 GB");
  expect(unit("disk_read", 0.10971)).toBe("0.11 MB/s");
  expect(unit("something_new", 3)).toBe("3");
});
