// Asks for the points of many charts at once: what is asked for in the same moment travels as one request.

import { postForBytes } from "../api/http";
import type { Axis } from "./lines";
import { decodeCharts, type Points } from "./points";

export interface Wanted {
  runId: string;
  name: string;
}

export interface Range {
  most: number;
  axis: Axis;
  from: number | null;
  to: number | null;
}

interface Asked {
  wanted: Wanted;
  range: Range;
  after: number | null;
  resolve: (points: Points) => void;
  reject: (error: unknown) => void;
}

const MOST_AT_ONCE = 100;

/** The whole of a series, or a range of it, in about `most` points. */
export function askPoints(wanted: Wanted, range: Range): Promise<Points> {
  return queued(wanted, range, null);
}

/** What came after the cursor. */
export function askNewPoints(wanted: Wanted, range: Range, after: number): Promise<Points> {
  return queued(wanted, range, after);
}

let waiting: Asked[] = [];

function queued(wanted: Wanted, range: Range, after: number | null): Promise<Points> {
  return new Promise((resolve, reject) => {
    if (!waiting.length) setTimeout(send, 0);
    waiting.push({ wanted, range, after, resolve, reject });
  });
}

function send(): void {
  const asked = waiting;
  waiting = [];
  const alike = new Map<string, Asked[]>();
  for (const one of asked) {
    const { most, axis, from, to } = one.range;
    const key = `${most} ${axis} ${from} ${to} ${one.after === null}`;
    const group = alike.get(key);
    if (group) group.push(one);
    else alike.set(key, [one]);
  }
  for (const group of alike.values()) {
    for (let at = 0; at < group.length; at += MOST_AT_ONCE) void sendGroup(group.slice(at, at + MOST_AT_ONCE));
  }
}

async function sendGroup(group: Asked[]): Promise<void> {
  const first = group[0]!;
  try {
    const bytes = await postForBytes("/api/charts", {
      ...first.range,
      series: group.map(({ wanted }) => ({ run_id: wanted.runId, name: wanted.name })),
      after: first.after === null ? null : group.map(({ after }) => after),
    });
    const found = decodeCharts(bytes.buffer as ArrayBuffer);
    group.forEach((one, i) => one.resolve(found[i]!));
  } catch (error) {
    group.forEach((one) => one.reject(error));
  }
}
