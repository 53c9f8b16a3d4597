// Why a run ended, or what it is doing, in words that come first.

import type { RunView } from "../../api/types";
import { hasEnded } from "../../api/types";

export interface Verdict {
  tone: "good" | "bad" | "off" | "active";
  headline: string;
  facts: [string, string][];
}

const HEADLINES: Record<string, string> = {
  "succeeded": "Completed",
  "script failed": "The script failed",
  "out of memory": "Out of memory",
  "killed": "Killed from outside",
  "canceled": "Canceled",
  "timed out": "Its time was over",
  "marked as failed": "Marked as failed",
  "environment failed": "The environment could not be built",
  "launch failed": "It could not be started",
  "agent lost": "Its agent was lost",
  "node lost": "A node was lost",
  "stalled": "It stood still",
  "process lost": "Its process went away",
};

export function verdictOf(run: RunView): Verdict {
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
