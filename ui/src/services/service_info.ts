// What a service's numbers become: lines, words, a first body to try. Pure.

import type { Line } from "../charts/lines";
import { nameAndVersion } from "../format/name";
import { dateTime } from "../format/time";
import type { Point, Service } from "./api";

const LINE = 72; // letters: what is longer is easier to change when it is spread out
const LONG_NUMBER = /(?<![\d.])\d{16,}(?![\d.eE])/; // a fraction's digits are all there
const STRING = /"(?:[^"\\]|\\.)*"/g;

type Look = Pick<Line, "key" | "label" | "colour">;

/** One number of the history as a line. Seconds in which nobody asked have no latency: a gap, not a zero. */
export function historyLine(history: readonly Point[], value: (point: Point) => number, look: Look, onlyAsked = false): Line {
  return {
    ...look,
    gaps: true,
    xs: Float64Array.from(history, (point) => point.at),
    ys: Float64Array.from(history, (point) => (onlyAsked && !point.requests_per_second ? NaN : value(point))),
  };
}

/** "0.07 ms", "12 ms", "1.2 s" */
export function milliseconds(ms: number | null | undefined): string {
  if (ms === null || ms === undefined || !Number.isFinite(ms)) return "–";
  if (ms >= 1000) return `${(ms / 1000).toPrecision(3)} s`;
  return `${Number(ms.toPrecision(ms < 10 ? 2 : 3))} ms`;
}

/** When a request came, in the reader's time zone: the log of a service has no zone and means UTC. */
export function requestTime(at: string): string {
  const ms = Date.parse(`${at}Z`);
  return Number.isNaN(ms) ? at : dateTime(ms / 1000);
}

/** Which models answer now, those with the larger share first. */
export function servedModels(service: Service): { id: string; name: string; version: string; share: number }[] {
  return service.versions
    .filter((one) => one.traffic > 0)
    .sort((a, b) => b.traffic - a.traffic)
    .flatMap((one) => one.models.map((id) => ({ id, ...nameAndVersion(id), share: one.traffic })));
}

export function workerWords(service: Service): string {
  const workers = service.versions.flatMap((one) => (one.state === "Retired" ? [] : one.workers));
  const serving = workers.filter((one) => one.state === "serving").length;
  return workers.length ? `${serving} of ${workers.length}` : "–";
}

/** The error of a service is what is wrong, and after it what to do. */
export function errorParts(error: string): { message: string; hint: string } {
  const at = error.indexOf("\n\nhint: ");
  return at < 0 ? { message: error, hint: "" } : { message: error.slice(0, at), hint: error.slice(at + 8) };
}

/** The body that the service's own description has as an example; else the form that most scoring scripts read. */
export function sampleBody(openapi: Record<string, unknown> | null): string {
  const schemas = (openapi?.components as { schemas?: Record<string, { example?: unknown }> } | undefined)?.schemas;
  const example = schemas?.ServiceInput?.example;
  const body = example ?? { data: [[1, 2, 3]] };
  const line = JSON.stringify(body);
  return line.length <= LINE ? line : JSON.stringify(body, null, 2);
}

/** An answer to be read: a text that is JSON in itself is opened up, as many scripts return one. */
export function readable(text: string): string {
  const whole = parsed(text);
  const shown = typeof whole === "string" ? whole : text;
  const value = parsed(shown);
  return value === undefined ? shown : JSON.stringify(value, null, 2);
}

/** On one line, if it is JSON. */
export function oneLine(text: string): string {
  const value = parsed(text);
  return value === undefined ? text : JSON.stringify(value);
}

/** The value, where it says all that the text says: NaN is no JSON, and long whole numbers would lose their last digits. */
function parsed(text: string): unknown {
  if (LONG_NUMBER.test(text.replace(STRING, '""'))) return undefined;
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}

/** Whether the shares can be sent: whole numbers that make a hundred. */
export function sharesWrong(shares: Record<string, number>): string {
  const values = Object.values(shares);
  if (values.some((one) => !Number.isInteger(one) || one < 0)) return "Shares are whole numbers.";
  const sum = values.reduce((a, b) => a + b, 0);
  return sum === 100 ? "" : `Together they are ${sum}; they must be 100.`;
}

/** The request as a line for a terminal. The key is asked for there, so that it is in no history. */
export function curlLine(service: Service, body: string): string {
  const key = service.configuration.auth_enabled ? ` \\\n  -H "Authorization: Bearer $KEY"` : "";
  return `curl ${service.scoring_uri} \\\n  -H "Content-Type: application/json"${key} \\\n  -d '${body.replaceAll("'", `'\\''`)}'`;
}
