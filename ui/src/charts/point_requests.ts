// Requests for chart points. Requests made in the same tick are combined into one HTTP request.

import { postForBytes } from "../api/http";
import type { Axis } from "./lines";
import { decodeCharts, type Points } from "./points";

export interface SeriesId {
  runId: string;
  name: string;
}

export interface PointRange {
  most: number;
  axis: Axis;
  from: number | null;
  to: number | null;
}

interface PendingRequest {
  series: SeriesId;
  range: PointRange;
  after: number | null;
  resolve: (points: Points) => void;
  reject: (error: unknown) => void;
}

const MAX_BATCH = 100;

/** A series, or a range of it, in about `range.most` points. */
export function fetchPoints(series: SeriesId, range: PointRange): Promise<Points> {
  return enqueue(series, range, null);
}

/** The points after a cursor. */
export function fetchNewPoints(series: SeriesId, range: PointRange, after: number): Promise<Points> {
  return enqueue(series, range, after);
}

let pending: PendingRequest[] = [];

function enqueue(series: SeriesId, range: PointRange, after: number | null): Promise<Points> {
  return new Promise((resolve, reject) => {
    if (!pending.length) setTimeout(flush, 0);
    pending.push({ series, range, after, resolve, reject });
  });
}

function flush(): void {
  const requests = pending;
  pending = [];
  const groups = new Map<string, PendingRequest[]>();
  for (const request of requests) {
    const { most, axis, from, to } = request.range;
    const key = `${most} ${axis} ${from} ${to} ${request.after === null}`;
    groups.set(key, [...(groups.get(key) ?? []), request]);
  }
  for (const group of groups.values()) {
    for (let start = 0; start < group.length; start += MAX_BATCH) void send(group.slice(start, start + MAX_BATCH));
  }
}

async function send(batch: PendingRequest[]): Promise<void> {
  const first = batch[0]!;
  try {
    const bytes = await postForBytes("/api/charts", {
      ...first.range,
      series: batch.map(({ series }) => ({ run_id: series.runId, name: series.name })),
      after: first.after === null ? null : batch.map(({ after }) => after),
    });
    const points = decodeCharts(bytes.buffer as ArrayBuffer);
    batch.forEach((request, i) => request.resolve(points[i]!));
  } catch (error) {
    batch.forEach((request) => request.reject(error));
  }
}
