// How each status looks, for whoever draws one: tables, charts, bars.

import type { Status } from "../api/shapes";

export type Tone = "good" | "bad" | "wait" | "off" | "active";
export type Shape = "tick" | "cross" | "slash" | "turning" | "dashes" | "half";

export interface StatusLook {
  word: string;
  tone: Tone;
  shape: Shape;
}

export const STATUS_LOOKS: Record<Status, StatusLook> = {
  NotStarted: { word: "Not started", tone: "wait", shape: "dashes" },
  Preparing: { word: "Preparing", tone: "wait", shape: "half" },
  Queued: { word: "Queued", tone: "wait", shape: "dashes" },
  Starting: { word: "Starting", tone: "active", shape: "half" },
  Running: { word: "Running", tone: "active", shape: "turning" },
  Finalizing: { word: "Finalizing", tone: "active", shape: "half" },
  CancelRequested: { word: "Canceling", tone: "wait", shape: "half" },
  Completed: { word: "Completed", tone: "good", shape: "tick" },
  Failed: { word: "Failed", tone: "bad", shape: "cross" },
  Canceled: { word: "Canceled", tone: "off", shape: "slash" },
};
