// Axis scales: positions between 0 and 1, and ticks. Numbers use a linear scale, or a logarithmic one if they span at
// least two decades; other values are sorted categories.

import type { Row, Value } from "../api/types";
import { number } from "../format/number";
import { dateTime, duration } from "../format/time";
import { valueOf } from "../runs/columns";
import { compareNatural } from "./differences";

export interface Scale {
  kind: "linear" | "log" | "category";
  /** Between 0 and 1; null for a missing value. */
  position: (value: Value | undefined) => number | null;
  ticks: { at: number; text: string }[];
}

const TICKS = 5;
const MIN_LOG_RATIO = 100; // from here on the scale is logarithmic

export function createScale(values: readonly (Value | undefined)[], format: (value: number) => string = number): Scale {
  const present = values.filter((value) => value !== null && value !== undefined);
  const numbers = present.filter((value): value is number => typeof value === "number");
  if (present.length > 0 && numbers.length === present.filter((v) => v !== "NaN").length && numbers.length > 0) {
    return numberScale(numbers, format);
  }
  return categoryScale(present.map(String));
}

function numberScale(numbers: number[], format: (value: number) => string): Scale {
  const low = Math.min(...numbers);
  const high = Math.max(...numbers);
  const log = low > 0 && high / low >= MIN_LOG_RATIO;
  const [from, to] = log ? [Math.log10(low), Math.log10(high)] : padded(low, high);
  const position = (value: Value | undefined): number | null => {
    if (typeof value !== "number" || !Number.isFinite(value)) return null;
    return ((log ? Math.log10(value) : value) - from) / (to - from);
  };
  const tickValues = log ? powers(low, high) : roundTicks(from, to);
  return {
    kind: log ? "log" : "linear",
    position,
    ticks: tickValues.map((value) => ({ at: position(value) ?? 0, text: format(value) })),
  };
}

function categoryScale(texts: string[]): Scale {
  const categories = [...new Set(texts)].sort(compareNatural);
  const positions = new Map(categories.map((category, i) => [category, categories.length === 1 ? 0.5 : i / (categories.length - 1)]));
  const step = Math.ceil(categories.length / 24); // more labels would overlap
  return {
    kind: "category",
    position: (value) => (value === null || value === undefined ? null : (positions.get(String(value)) ?? null)),
    ticks: categories.filter((_, i) => i % step === 0).map((category) => ({ at: positions.get(category) ?? 0, text: category })),
  };
}

/** Widens an empty span. */
function padded(low: number, high: number): [number, number] {
  if (low !== high) return [low, high];
  const around = Math.abs(low) * 0.5 || 1;
  return [low - around, high + around];
}

/** About five round numbers within a span. */
export function roundTicks(low: number, high: number): number[] {
  const rough = (high - low) / TICKS;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((n) => n * power).find((n) => n >= rough) ?? 10 * power;
  const ticks = [];
  for (let i = Math.ceil(low / step - 1e-9); i * step <= high + step * 1e-9; i += 1) ticks.push(stripNoise(i * step));
  return ticks;
}

function powers(low: number, high: number): number[] {
  const ticks = [];
  for (let e = Math.ceil(Math.log10(low) - 1e-9); e <= Math.log10(high) + 1e-9; e += 1) ticks.push(stripNoise(10 ** e));
  return ticks;
}

/** Removes floating-point noise: 0.30000000000000004 becomes 0.3. */
function stripNoise(value: number): number {
  return Number(value.toPrecision(12));
}

/** The formatter for values of a field. */
export function formatterFor(name: string): (value: number) => string {
  if (name === "duration_s") return duration;
  return name.endsWith("_at") ? dateTime : number;
}

/** The formatted value of a field of a run. */
export function formatField(row: Row, name: string): string {
  const value = valueOf(row, name);
  return typeof value === "number" ? formatterFor(name)(value) : String(value ?? "–");
}
