// Labels, colors and shapes of statuses.

import type { Status } from "../api/types";

export type Tone = "good" | "bad" | "wait" | "off" | "active";
export type Shape = "tick" | "cross" | "slash" | "turning" | "dashes" | "half";

export interface Badge {
  label: string;
  tone: Tone;
  shape: Shape;
}

export const RUN_STATUS_BADGES: Record<Status, Badge> = {
  NotStarted: { label: "Not started", tone: "wait", shape: "dashes" },
  Preparing: { label: "Preparing", tone: "wait", shape: "half" },
  Queued: { label: "Queued", tone: "wait", shape: "dashes" },
  Starting: { label: "Starting", tone: "active", shape: "half" },
  Running: { label: "Running", tone: "active", shape: "turning" },
  Finalizing: { label: "Finalizing", tone: "active", shape: "half" },
  CancelRequested: { label: "Canceling", tone: "wait", shape: "half" },
  Completed: { label: "Completed", tone: "good", shape: "tick" },
  Failed: { label: "Failed", tone: "bad", shape: "cross" },
  Canceled: { label: "Canceled", tone: "off", shape: "slash" },
};

/** States of services and of their versions. */
export const SERVICE_STATE_BADGES: Record<string, Badge> = {
  Transitioning: { label: "Starting", tone: "active", shape: "half" },
  Healthy: { label: "Healthy", tone: "good", shape: "tick" },
  Unhealthy: { label: "Unhealthy", tone: "bad", shape: "cross" },
  Failed: { label: "Failed", tone: "bad", shape: "cross" },
  Retired: { label: "Retired", tone: "off", shape: "slash" },
};

/** Stages of model versions. */
export const STAGE_BADGES: Record<string, Badge> = {
  none: { label: "No stage", tone: "off", shape: "dashes" },
  candidate: { label: "Candidate", tone: "wait", shape: "half" },
  approved: { label: "Approved", tone: "good", shape: "tick" },
  rejected: { label: "Rejected", tone: "bad", shape: "cross" },
  archived: { label: "Archived", tone: "off", shape: "slash" },
};

export const TRANSFER_STATE_BADGES: Record<string, Badge> = {
  running: { label: "Running", tone: "active", shape: "turning" },
  done: { label: "Done", tone: "good", shape: "tick" },
  failed: { label: "Failed", tone: "bad", shape: "cross" },
  canceled: { label: "Canceled", tone: "off", shape: "slash" },
};
