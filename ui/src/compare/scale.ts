// An axis: where a value stands between 0 and 1, and which values are written beside it. Numbers on a line, or on a
// logarithmic one where they span more than two powers of ten; anything else in a row, sorted.

import type { Row, Value } from "../api/types";
import { number } from "../format/number";
import { dateTime, duration } from "../format/time";
import { valueOf } from "../runs/columns";
import { byWords } from "./differences";

export interface Scale {
  kind: "linear" | "log" | "words";
  /** Between 0 and 1, or null where there is no value. */
  place: (value: Value | undefined) => number | null;
  ticks: { at: number; text: string }[];
}

const TICKS = 5;
const WIDE = 100; // from here on a span is told by powers of ten

export function scaleOf(values: readonly (Value | undefined)[], write: (value: number) => string = number): Scale {
  const there = values.filter((value) => value !== null && value !== undefined);
  const numbers = there.filter((value): value is number => typeof value === "number");
  if (there.length > 0 && numbers.length === there.filter((v) => v !== "NaN").length && numbers.length > 0) {
    return numberScale(numbers, write);
  }
  return wordScale(there.map(String));
}

function numberScale(numbers: number[], write: (value: number) => string): Scale {
  const low = Math.min(...numbers);
  const high = Math.max(...numbers);
  const log = low > 0 && high / low >= WIDE;
  const [from, to] = log ? [Math.log10(low), Math.log10(high)] : padded(low, high);
  const place = (value: Value | undefined): number | null => {
    if (typeof value !== "number" || !Number.isFinite(value)) return null;
    return ((log ? Math.log10(value) : value) - from) / (to - from);
  };
  const written = log ? powers(low, high) : round(from, to);
  return {
    kind: log ? "log" : "linear",
    place,
    ticks: written.map((value) => ({ at: place(value) ?? 0, text: write(value) })),
  };
}

function wordScale(texts: string[]): Scale {
  const words = [...new Set(texts)].sort(byWords);
  const at = new Map(words.map((word, i) => [word, words.length === 1 ? 0.5 : i / (words.length - 1)]));
  const step = Math.ceil(words.length / 24); // more would be written over each other
  return {
    kind: "words",
    place: (value) => (value === null || value === undefined ? null : (at.get(String(value)) ?? null)),
    ticks: words.filter((_, i) => i % step === 0).map((word) => ({ at: at.get(word) ?? 0, text: word })),
  };
}

/** A span that is not empty. */
function padded(low: number, high: number): [number, number] {
  if (low !== high) return [low, high];
  const around = Math.abs(low) * 0.5 || 1;
  return [low - around, high + around];
}

/** About five round numbers within a span. */
export function round(low: number, high: number): number[] {
  const rough = (high - low) / TICKS;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((n) => n * power).find((n) => n >= rough) ?? 10 * power;
  const ticks = [];
  for (let i = Math.ceil(low / step - 1e-9); i * step <= high + step * 1e-9; i += 1) ticks.push(cleaned(i * step));
  return ticks;
}

function powers(low: number, high: number): number[] {
  const ticks = [];
  for (let e = Math.ceil(Math.log10(low) - 1e-9); e <= Math.log10(high) + 1e-9; e += 1) ticks.push(cleaned(10 ** e));
  return ticks;
}

/** 0.30000000000000004 is nobody's tick. */
function cleaned(value: number): number {
  return Number(value.toPrecision(12));
}

/** How the values of a field are written. */
export function writing(name: string): (value: number) => string {
  if (name === "duration_s") return duration;
  return name.endsWith("_at") ? dateTime : number;
}

/** The value of a run, as it is written beside a point or a line. */
export function written(row: Row, name: string): string {
  const value = valueOf(row, name);
  return typeof value === "number" ? writing(name)(value) : String(value ?? "–");
}
