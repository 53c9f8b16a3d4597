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

/** Labels of a clock axis: times of day as precise as the ticks are apart, or dates. */
export function timeTicks(values: number[], increment: number): string[] {
  if (increment >= 86_400) return values.map((at) => date(at).slice(5));
  if (increment >= 60) return values.map((at) => clock(at).slice(0, 5));
  const digits = increment >= 1 ? 0 : Math.min(3, Math.ceil(-Math.log10(increment)));
  return values.map((at) => clock(at) + (digits ? (Math.round((at % 1) * 1000) / 1000).toFixed(digits).slice(1) : ""));
}

/** Labels of a step or elapsed-time axis. */
export function xTicks(axis: Axis, values: number[]): string[] {
  if (axis === "relative") return distinct(values, [shortDuration, ...[0, 1, 2, 3, 6].map((digits) => (s: number) => exactDuration(s, digits))]);
  const steps = values.filter(Number.isInteger);
  const labels = new Map(exact(steps, [compact, number]).map((label, i) => [steps[i], label]));
  return values.map((value) => labels.get(value) ?? ""); // there is nothing between two steps
}

/** An x value for tooltips. */
export function formatX(axis: Axis, value: number): string {
  if (axis === "step") return `step ${number(Number.isInteger(value) ? value : Number(value.toPrecision(6)))}`;
  if (axis === "relative") return `after ${duration(value)}`;
  return new Date(value * 1000).toLocaleString(undefined, { dateStyle: "medium", timeStyle: "medium" });
}

/** Labels of the y axis, as short as possible while exact. */
export function yTicks(values: number[]): string[] {
  const largest = Math.max(...values.map(Math.abs));
  const plain = [6, 8, 10, 12, 15].map((digits) => (value: number) => String(Number(value.toPrecision(digits))).replace("-", "−"));
  if ((largest > 0 && largest < 1e-3) || largest >= 1e9) return exact(values, [2, 5, 8, 14].map(exponent));
  if (largest >= 1e4) return exact(values, [largest >= 1e6 ? exponent(2) : compact, compact, number, ...plain]);
  return exact(values, plain);
}

/** Labels with a unit, which limits their digits: an equal neighbor is left blank. */
export function unitTicks(values: number[], unit: (value: number) => string): string[] {
  const labels = values.map(unit);
  return labels.map((label, i) => (i > 0 && label === labels[i - 1] ? "" : label));
}

/** Formats the values with the first format that gives each of them a label of its own. */
function distinct(values: number[], formats: ((value: number) => string)[]): string[] {
  return firstFormat(values, formats, (labels) => new Set(labels).size === new Set(values).size);
}

/** Formats the values with the first format whose rounding is small compared with the distance of the ticks. */
function exact(values: number[], formats: ((value: number) => string)[]): string[] {
  const step = Math.min(...values.slice(1).map((value, i) => Math.abs(value - values[i]!)));
  const tolerance = Number.isFinite(step) ? 0.02 * step : Infinity;
  return firstFormat(values, formats, (labels) => labels.every((label, i) => Math.abs(parseLabel(label) - values[i]!) <= tolerance));
}

function firstFormat(values: number[], formats: ((value: number) => string)[], fits: (labels: string[]) => boolean): string[] {
  let labels: string[] = [];
  for (const format of formats) {
    labels = values.map(format);
    if (fits(labels)) break;
  }
  return labels;
}

const UNITS: Record<string, number> = { k: 1e3, M: 1e6, G: 1e9 };

function parseLabel(label: string): number {
  const text = label.replaceAll(",", "").replaceAll("−", "-");
  const unit = UNITS[text.slice(-1)];
  return unit ? Number(text.slice(0, -1)) * unit : Number(text);
}

function exponent(digits: number): (value: number) => string {
  return (value) => (value === 0 ? "0" : value.toExponential(digits).replace(/\.?0+e/, "e").replace("e+", "e").replaceAll("-", "−"));
}

/** "1:23:45.6": hours only if there are any. */
function exactDuration(s: number, digits: number): string {
  if (s < 0) return `−${exactDuration(-s, digits)}`;
  const rounded = Number(s.toFixed(digits));
  const seconds = (rounded % 60).toFixed(digits).padStart(digits ? 3 + digits : 2, "0");
  const minutes = Math.floor(rounded / 60);
  if (minutes < 60) return `${minutes}:${seconds}`;
  return `${Math.floor(minutes / 60)}:${String(minutes % 60).padStart(2, "0")}:${seconds}`;
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
