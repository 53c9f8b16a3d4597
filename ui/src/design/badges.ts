// How each status looks, for whoever draws one: tables, charts, bars.

import type { Status } from "../api/types";

export type Tone = "good" | "bad" | "wait" | "off" | "active";
export type Shape = "tick" | "cross" | "slash" | "turning" | "dashes" | "half";

export interface Look {
  word: string;
  tone: Tone;
  shape: Shape;
}

export const STATUS_LOOKS: Record<Status, Look> = {
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

/** Of services and of their versions. */
export const SERVICE_LOOKS: Record<string, Look> = {
  Transitioning: { word: "Getting ready", tone: "active", shape: "half" },
  Healthy: { word: "Healthy", tone: "good", shape: "tick" },
  Unhealthy: { word: "Unhealthy", tone: "bad", shape: "cross" },
  Failed: { word: "Failed", tone: "bad", shape: "cross" },
  Retired: { word: "Retired", tone: "off", shape: "slash" },
};

/** How far a version of a model has come. */
export const STAGE_LOOKS: Record<string, Look> = {
  none: { word: "No stage", tone: "off", shape: "dashes" },
  candidate: { word: "Candidate", tone: "wait", shape: "half" },
  approved: { word: "Approved", tone: "good", shape: "tick" },
  rejected: { word: "Rejected", tone: "bad", shape: "cross" },
  archived: { word: "Archived", tone: "off", shape: "slash" },
};

export const TRANSFER_LOOKS: Record<string, Look> = {
  running: { word: "Running", tone: "active", shape: "turning" },
  done: { word: "Done", tone: "good", shape: "tick" },
  failed: { word: "Failed", tone: "bad", shape: "cross" },
  canceled: { word: "Canceled", tone: "off", shape: "slash" },
};
