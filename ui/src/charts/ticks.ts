// Positions and labels of axis ticks.

import { compact, number } from "../format/number";
import { clock, date, duration } from "../format/time";
import type { Axis } from "./lines";

/** The range of all values with some padding; on a logarithmic scale of the positive ones. */
export function valueRange(columns: Float64Array[], logarithmic: boolean): [number, number] {
  let low = Infinity;
  let high = -Infinity;
  for (const column of columns) {
    for (const value of column) {
      if (!Number.isFinite(value) || (logarithmic && value <= 0)) continue;
      if (value < low) low = value;
      if (value > high) high = value;
    }
  }
  if (low > high) return logarithmic ? [0.1, 1] : [0, 1];
  if (logarithmic) {
    const padding = Math.max((Math.log10(high) - Math.log10(low)) * 0.06, 0.02);
    return [low / 10 ** padding, high * 10 ** padding];
  }
  const padding = (high - low) * 0.06 || Math.abs(high) * 0.1 || 1;
  return [low - padding, high + padding];
}

/** 1, 2, 5, 10, 20, … between the bounds; powers of ten only over many decades; linear steps within one. */
export function logarithmicTicks(low: number, high: number): number[] {
  const decades = Math.log10(high / low);
  const factors = decades > 5 ? [1] : decades > 2.5 ? [1, 3] : [1, 2, 5];
  const ticks: number[] = [];
  for (let power = Math.floor(Math.log10(low)); power <= Math.log10(high); power++) {
    for (const factor of factors) {
      const tick = Number((factor * 10 ** power).toPrecision(12));
      if (tick >= low && tick <= high) ticks.push(tick);
    }
  }
  return ticks.length >= 2 ? limitTicks(ticks, 8) : linearTicks(low, high);
}

/** A time of day, or a date if ticks are at least a day apart. */
export function timeTick(at: number, increment: number): string {
  if (increment >= 86_400) return date(at).slice(5);
  return increment < 60 ? clock(at) : clock(at).slice(0, 5);
}

/** The label of a tick on a step or elapsed-time axis. */
export function xTick(axis: Axis, value: number): string {
  return axis === "relative" ? shortDuration(value) : Number.isInteger(value) ? compact(value) : "";
}

/** An x value for tooltips. */
export function formatX(axis: Axis, value: number): string {
  if (axis === "step") return `step ${number(Number.isInteger(value) ? value : Number(value.toPrecision(6)))}`;
  if (axis === "relative") return `after ${duration(value)}`;
  return new Date(value * 1000).toLocaleString(undefined, { dateStyle: "medium", timeStyle: "medium" });
}

/** Labels of the y axis, as short as possible while distinguishable. */
export function yTicks(values: number[]): string[] {
  const largest = Math.max(...values.map(Math.abs));
  if (largest >= 1e6 || (largest > 0 && largest < 1e-3)) return values.map((v) => (v === 0 ? "0" : exponent(v)));
  if (largest >= 1e4) return values.map(compact);
  return values.map((value) => String(Number(value.toPrecision(6))).replace("-", "−"));
}

function exponent(value: number): string {
  return value.toExponential(2).replace(/\.?0+e/, "e").replace("e+", "e").replaceAll("-", "−");
}

function shortDuration(s: number): string {
  if (s < 0) return `−${shortDuration(-s)}`;
  if (s < 60) return `${Number(s.toPrecision(3))} s`;
  if (s < 3600) return s % 60 ? `${Math.floor(s / 60)}:${String(Math.round(s % 60)).padStart(2, "0")}` : `${s / 60} min`;
  if (s < 86_400) return s % 3600 ? `${Math.floor(s / 3600)} h ${Math.round((s % 3600) / 60)}` : `${s / 3600} h`;
  return `${Number((s / 86_400).toPrecision(3))} d`;
}

function limitTicks(ticks: number[], limit: number): number[] {
  const every = Math.ceil(ticks.length / limit);
  return ticks.filter((_, i) => i % every === 0);
}

function linearTicks(low: number, high: number): number[] {
  const rough = (high - low) / 4;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = power * ([1, 2, 5].find((factor) => factor * power >= rough) ?? 10);
  const ticks: number[] = [];
  for (let tick = Math.ceil(low / step) * step; tick <= high; tick += step) ticks.push(Number(tick.toPrecision(12)));
  return ticks;
}
