// The outcome of a run, or its current activity.

import type { RunView } from "../../api/types";
import { hasEnded } from "../../api/types";

export interface Outcome {
  tone: "good" | "bad" | "off" | "active";
  headline: string;
  facts: [string, string][];
}

const HEADLINES: Record<string, string> = {
  "succeeded": "Completed",
  "script failed": "Script failed",
  "out of memory": "Out of memory",
  "killed": "Killed externally",
  "canceled": "Canceled",
  "timed out": "Timed out",
  "marked as failed": "Marked as failed",
  "environment failed": "Environment build failed",
  "launch failed": "Launch failed",
  "agent lost": "Agent lost",
  "node lost": "Node lost",
  "stalled": "Stalled",
  "process lost": "Process lost",
};

export function describeOutcome(run: RunView): Outcome {
  if (!hasEnded(run.status) || !run.end) {
    return { tone: "active", headline: run.activity || run.status, facts: [] };
  }
  const { end } = run;
  const facts: [string, string][] = [];
  if (run.status !== "Completed") {
    if (end.rank !== null) facts.push(["rank", String(end.rank)]);
    if (end.node) facts.push(["node", end.node]);
    if (end.exit_code !== null && end.exit_code !== 0) facts.push(["exit code", String(end.exit_code)]);
    if (end.signal) facts.push(["signal", end.signal]);
    if (end.processes_left) facts.push(["processes left", String(end.processes_left)]);
  }
  const tone = run.status === "Completed" ? "good" : run.status === "Failed" ? "bad" : "off";
  return { tone, headline: HEADLINES[end.reason] ?? end.reason, facts };
}
