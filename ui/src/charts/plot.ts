// uPlot as the charts use it: axes, grid, pointer and selection. `draw_lines.ts` draws the lines.

import uPlot from "uplot";
import { cssColor } from "../design/theme.svelte";
import { drawLines, type Frame } from "./draw_lines";
import type { Axis, Line } from "./lines";
import { logarithmicTicks, timeTicks, unitTicks, xTicks, yTicks } from "./ticks";

export interface View {
  x: [number, number];
  y: [number, number];
}

export interface PlotOptions {
  axis: Axis;
  logarithmic: boolean;
  unit: ((value: number) => string) | undefined;
  view: () => View;
  lines: () => Line[];
  faded: (line: Line) => boolean;
  onhover: (plot: uPlot) => void;
  onselect: (from: number, to: number) => void;
  onreset: () => void;
}

const NICE = [1, 2, 5];
const STEPS = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12].flatMap((power) => NICE.map((n) => n * 10 ** power));
const SECONDS = [
  ...[-3, -2, -1].flatMap((power) => NICE.map((n) => n * 10 ** power)),
  ...[1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10_800, 21_600, 43_200],
  ...[1, 2, 5, 10, 20, 50, 100].map((days) => days * 86_400),
];

export function makePlot(target: HTMLElement, size: { width: number; height: number }, options: PlotOptions): uPlot {
  const textColor = cssColor("--ink-3");
  const grid = { stroke: cssColor("--line"), width: 1 };
  const bad = cssColor("--bad");
  const font = `11px ${getComputedStyle(target).fontFamily}`;
  const common = { stroke: textColor, font, grid, ticks: { show: false }, border: { show: false } };
  const { axis, logarithmic } = options;
  const xAxis: uPlot.Axis = { ...common, grid: { show: false }, gap: 6, size: 28, space: 64 };
  if (axis === "time") {
    // uPlot's own labels have a second line with the date, for which there is no room
    xAxis.values = (_, splits, __, ___, increment) => timeTicks(splits, increment);
  } else {
    xAxis.incrs = axis === "step" ? STEPS : SECONDS;
    xAxis.values = (_, splits) => xTicks(axis, splits);
  }
  const yAxis: uPlot.Axis = {
    ...common,
    gap: 6,
    space: 34,
    size: (_, values) => 16 + 6.4 * Math.max(2, ...(values ?? []).map((text) => text.length)),
    values: (_, splits) => (options.unit ? unitTicks(splits, options.unit) : yTicks(splits)),
  };
  if (logarithmic) {
    yAxis.splits = (_, __, low, high) => logarithmicTicks(low, high);
    yAxis.filter = (_, splits) => splits;
  }
  return new uPlot(
    {
      ...size,
      padding: [8, 10, 0, 0],
      legend: { show: false },
      scales: {
        x: { time: axis === "time", range: () => options.view().x },
        y: { distr: logarithmic ? 3 : 1, range: () => options.view().y },
      },
      axes: [xAxis, yAxis],
      series: [{}, { paths: () => null, points: { show: false } }],
      cursor: {
        y: false,
        points: { show: false },
        drag: { x: true, y: false, setScale: false, dist: 4 },
        bind: { dblclick: () => () => (options.onreset(), null) },
      },
      hooks: {
        draw: [(plot) => drawLines(frameOf(plot, options, bad), options.lines(), options.faded)],
        setCursor: [options.onhover],
        setSelect: [
          (plot) => {
            const { left, width } = plot.select;
            if (width < 4) return;
            plot.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
            options.onselect(plot.posToVal(left, "x"), plot.posToVal(left + width, "x"));
          },
        ],
      },
    },
    plotData(options.view()),
    target,
  );
}

/** uPlot gets the corners only, because the lines are drawn separately. */
export function plotData({ x, y }: View): uPlot.AlignedData {
  return [x, y];
}

export function frameOf(plot: uPlot, options: Pick<PlotOptions, "logarithmic" | "view">, bad = ""): Frame {
  const { x, y } = options.view();
  return {
    context: plot.ctx,
    ...plot.bbox,
    ratio: plot.ctx.canvas.width / plot.width,
    x,
    y,
    logarithmic: options.logarithmic,
    bad,
  };
}
