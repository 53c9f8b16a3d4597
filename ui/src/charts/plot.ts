// uPlot as the charts use it: axes, grid, pointer and selection. The lines are drawn by `drawing.ts`.

import uPlot from "uplot";
import { colour } from "../design/theme.svelte";
import { drawLines, type Frame } from "./draw_lines";
import type { Axis, Line } from "./lines";
import { logarithmicTicks, timeTick, xTick, yTicks } from "./ticks";

export interface View {
  x: [number, number];
  y: [number, number];
}

export interface Wiring {
  axis: Axis;
  logarithmic: boolean;
  unit: ((value: number) => string) | undefined;
  view: () => View;
  lines: () => Line[];
  faded: (line: Line) => boolean;
  pointed: (plot: uPlot) => void;
  selected: (from: number, to: number) => void;
  reset: () => void;
}

const NICE = [1, 2, 5];
const STEPS = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12].flatMap((power) => NICE.map((n) => n * 10 ** power));
const SECONDS = [
  ...[-3, -2, -1].flatMap((power) => NICE.map((n) => n * 10 ** power)),
  ...[1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10_800, 21_600, 43_200],
  ...[1, 2, 5, 10, 20, 50, 100].map((days) => days * 86_400),
];

export function makePlot(place: HTMLElement, size: { width: number; height: number }, wiring: Wiring): uPlot {
  const ink = colour("--ink-3");
  const grid = { stroke: colour("--line"), width: 1 };
  const bad = colour("--bad");
  const font = `11px ${getComputedStyle(place).fontFamily}`;
  const common = { stroke: ink, font, grid, ticks: { show: false }, border: { show: false } };
  const { axis, logarithmic } = wiring;
  const xAxis: uPlot.Axis = { ...common, grid: { show: false }, gap: 6, size: 28, space: 64 };
  if (axis === "time") {
    // one line of words: the plot's own have the date below, where there is no room for it
    xAxis.values = (_, splits, __, ___, increment) => splits.map((value) => timeTick(value, increment));
  } else {
    xAxis.incrs = axis === "step" ? STEPS : SECONDS;
    xAxis.values = (_, splits) => splits.map((value) => xTick(axis, value));
  }
  const yAxis: uPlot.Axis = {
    ...common,
    gap: 6,
    space: 34,
    size: (_, values) => 16 + 6.4 * Math.max(2, ...(values ?? []).map((text) => text.length)),
    values: (_, splits) => (wiring.unit ? splits.map(wiring.unit) : yTicks(splits)),
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
        x: { time: axis === "time", range: () => wiring.view().x },
        y: { distr: logarithmic ? 3 : 1, range: () => wiring.view().y },
      },
      axes: [xAxis, yAxis],
      series: [{}, { paths: () => null, points: { show: false } }],
      cursor: {
        y: false,
        points: { show: false },
        drag: { x: true, y: false, setScale: false, dist: 4 },
        bind: { dblclick: () => () => (wiring.reset(), null) },
      },
      hooks: {
        draw: [(plot) => drawLines(frameOf(plot, wiring, bad), wiring.lines(), wiring.faded)],
        setCursor: [wiring.pointed],
        setSelect: [
          (plot) => {
            const { left, width } = plot.select;
            if (width < 4) return;
            plot.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
            wiring.selected(plot.posToVal(left, "x"), plot.posToVal(left + width, "x"));
          },
        ],
      },
    },
    plotData(wiring.view()),
    place,
  );
}

/** uPlot only needs to know the corners: the points themselves never go through it. */
export function plotData({ x, y }: View): uPlot.AlignedData {
  return [x, y];
}

export function frameOf(plot: uPlot, wiring: Pick<Wiring, "logarithmic" | "view">, bad = ""): Frame {
  const { x, y } = wiring.view();
  return {
    context: plot.ctx,
    ...plot.bbox,
    ratio: plot.ctx.canvas.width / plot.width,
    x,
    y,
    logarithmic: wiring.logarithmic,
    bad,
  };
}
