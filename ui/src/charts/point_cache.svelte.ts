// The points of one chart: an overview that grows at its end, and the zoomed range.

import { isAbort } from "../api/http";
import { fetchNewPoints, fetchPoints, type SeriesId } from "./point_requests";
import type { Axis } from "./lines";
import { append } from "./merge";
import type { Points } from "./points";

export const MAX_POINTS = 1200; // about one per pixel of a chart

export class PointCache {
  overview = $state.raw<ReadonlyMap<string, Points>>(new Map());
  zoomed = $state.raw<ReadonlyMap<string, Points> | null>(null);
  error = $state.raw<unknown>(null);
  loading = $state(false);
  #updating = false;
  #pending: SeriesId[] | null = null;
  #zoomRequest = 0;

  /** Fetches new series completely, and only the new points of cached ones. */
  async update(series: SeriesId[]): Promise<void> {
    if (this.#updating) {
      this.#pending = series; // one further update afterwards instead of several concurrent ones
      return;
    }
    this.#updating = true;
    this.loading = this.overview.size === 0;
    try {
      const points = await Promise.all(series.map((id) => this.#fetch(id)));
      this.overview = new Map(series.map((id, i) => [seriesKey(id), points[i]!]));
      this.error = null;
    } catch (error) {
      if (!isAbort(error)) this.error = error;
    } finally {
      this.#updating = this.loading = false;
    }
    const pending = this.#pending;
    this.#pending = null;
    if (pending) await this.update(pending);
  }

  /** Fetches a range at full detail; the overview is shown until it arrives. */
  async zoom(series: SeriesId[], axis: Axis, range: [number, number] | null): Promise<void> {
    const request = ++this.#zoomRequest;
    this.zoomed = null;
    if (range === null) return;
    try {
      const query = { most: MAX_POINTS, axis, from: range[0], to: range[1] };
      const points = await Promise.all(series.map((id) => fetchPoints(id, query)));
      if (request === this.#zoomRequest) this.zoomed = new Map(series.map((id, i) => [seriesKey(id), points[i]!]));
    } catch (error) {
      if (!isAbort(error) && request === this.#zoomRequest) this.error = error;
    }
  }

  async #fetch(id: SeriesId): Promise<Points> {
    const cached = this.overview.get(seriesKey(id));
    const fullRange = { most: MAX_POINTS, axis: "step" as const, from: null, to: null };
    if (!cached) return fetchPoints(id, fullRange);
    return append(cached, await fetchNewPoints(id, fullRange, cached.next), MAX_POINTS);
  }
}

export function seriesKey({ runId, name }: SeriesId): string {
  return `${runId}\n${name}`;
}
