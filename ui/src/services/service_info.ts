// Formatted values of a service.

import type { Line } from "../charts/lines";
import { nameAndVersion } from "../format/name";
import { dateTime } from "../format/time";
import type { Service, ServicePoint } from "./api";

type LineStyle = Pick<Line, "key" | "label" | "color">;

/** One value of the history as a line. With `skipIdle`, seconds without requests are gaps: they have no latency. */
export function historyLine(history: readonly ServicePoint[], value: (point: ServicePoint) => number, style: LineStyle, skipIdle = false): Line {
  return {
    ...style,
    gaps: true,
    xs: Float64Array.from(history, (point) => point.at),
    ys: Float64Array.from(history, (point) => (skipIdle && !point.requests_per_second ? NaN : value(point))),
  };
}

/** "0.07 ms", "12 ms", "1.2 s" */
export function milliseconds(ms: number | null | undefined): string {
  if (ms === null || ms === undefined || !Number.isFinite(ms)) return "–";
  if (ms >= 1000) return `${(ms / 1000).toPrecision(3)} s`;
  return `${Number(ms.toPrecision(ms < 10 ? 2 : 3))} ms`;
}

/** The local time of a request; the request log has UTC without a zone. */
export function requestTime(at: string): string {
  const ms = Date.parse(`${at}Z`);
  return Number.isNaN(ms) ? at : dateTime(ms / 1000);
}

/** The models that receive requests, largest share first. */
export function servedModels(service: Service): { id: string; name: string; version: string; share: number }[] {
  return service.versions
    .filter(({ traffic }) => traffic > 0)
    .sort((a, b) => b.traffic - a.traffic)
    .flatMap(({ models, traffic }) => models.map((id) => ({ id, ...nameAndVersion(id), share: traffic })));
}

export function workerLabel(service: Service): string {
  const workers = service.versions.flatMap((version) => (version.state === "Retired" ? [] : version.workers));
  const serving = workers.filter(({ state }) => state === "serving").length;
  return workers.length ? `${serving} of ${workers.length}` : "–";
}

/** Splits the error of a service into message and hint. */
export function splitError(error: string): { message: string; hint: string } {
  const separator = error.indexOf("\n\nhint: ");
  return separator < 0 ? { message: error, hint: "" } : { message: error.slice(0, separator), hint: error.slice(separator + 8) };
}

/** The reason why traffic shares are invalid; empty if they are valid. */
export function shareError(shares: Record<string, number>): string {
  const values = Object.values(shares);
  if (values.some((share) => !Number.isInteger(share) || share < 0)) return "Enter whole numbers.";
  const sum = values.reduce((a, b) => a + b, 0);
  return sum === 100 ? "" : `The shares must add up to 100, not ${sum}.`;
}
