// Ranking and summaries of the children of a sweep.

import { hasEnded, type Row } from "../api/types";
import type { ChartSeries } from "../charts/chart_lines";
import { seriesToken } from "../design/theme.svelte";
import type { Child, Sweep } from "./api";

/** Best first; children without a report last, newest of them first. */
export function rankChildren(sweep: Sweep): Child[] {
  const sign = sweep.goal === "maximize" ? 1 : -1;
  return [...sweep.children].sort((a, b) => {
    if (a.best !== null && b.best !== null) return sign * (b.best - a.best) || a.number - b.number;
    if (a.best !== null || b.best !== null) return a.best !== null ? -1 : 1;
    return b.number - a.number;
  });
}

/** Chart series of the first `limit` children; stopped ones are gray. */
export function childSeries(sweep: Sweep, children: readonly Child[], limit: number): ChartSeries[] {
  return children
    .filter((child) => child.reports > 0 || child.status === "Running")
    .slice(0, limit)
    .map((child) => ({
      runId: child.run_id,
      name: sweep.primary_metric,
      label: `child ${child.number}${child.stopped ? " (stopped)" : ""}`,
      color: child.stopped ? "--off" : seriesToken(child.number),
      origin: child.began_at ?? 0,
    }));
}

/** Identifies the current results of all children: changes with each new or improved result. */
export function resultsKey(sweep: Sweep): string {
  return sweep.children.map((child) => `${child.number}:${child.best}`).join();
}

/** The sampling method in one line. */
export function samplingLabel({ sampling, study }: Sweep): string {
  if (study) return `Optuna, study ${study}`;
  const population = sampling.population ? ` of ${sampling.population.size}` : "";
  return `${sampling.name}${population}, seed ${sampling.seed}`;
}

/** The child that this one resumes; a run of another sweep by its full id. */
export function resumedFrom(sweep: Sweep, child: Child): string {
  return childTitle(sweep.sweep_id, child.resumes);
}

/** "child 3" for a child of the sweep; another run by its full id. */
export function childTitle(sweepId: string, runId: string): string {
  const prefix = `${sweepId}_`;
  return runId.startsWith(prefix) ? `child ${runId.slice(prefix.length)}` : runId;
}

/** The names of all parameters, in order of first occurrence. */
export function parameterNames(sweep: Sweep): string[] {
  return [...new Set(sweep.children.flatMap((child) => Object.keys(child.parameters)))];
}

export interface Progress {
  done: number;
  running: number;
  stopped: number;
  failed: number;
  total: number;
}

export function sweepProgress(sweep: Sweep): Progress {
  const ended = sweep.children.filter((child) => hasEnded(child.status));
  return {
    done: ended.length,
    running: sweep.children.length - ended.length,
    stopped: ended.filter((child) => child.stopped !== "").length,
    failed: ended.filter((child) => child.status === "Failed").length,
    total: hasEnded(sweep.status) ? sweep.children.length : sweep.max_total_runs,
  };
}

/** A child as a table row, with its best result as the metric. */
export function toRow(sweep: Sweep, child: Child): Row {
  const params = Object.fromEntries(Object.entries(child.parameters).map(([name, v]) => [name.replace(/^-+/, ""), v]));
  return {
    run_id: child.run_id,
    number: child.number,
    experiment: `child ${child.number}`,
    name: null,
    display_name: "",
    status: child.status,
    target: sweep.target,
    type: null,
    parent_id: sweep.sweep_id,
    submitted_by: null,
    created_at: 0,
    started_at: null,
    ended_at: null,
    duration_s: null,
    nodes: 1,
    ranks: 1,
    reason: child.stopped,
    tags: {},
    params,
    metrics: { [sweep.primary_metric]: child.best },
  };
}

/** `Bandit, slack_factor 0.1, evaluation_interval 2`: the policy with its non-default settings. */
export function policyLabel(policy: Sweep["policy"]): string {
  if (!policy) return "none";
  const defaults: Record<string, unknown> = { delay_evaluation: 0, truncation_percentage: 0, brackets: 1, reduction_factor: 3 };
  const settings = Object.entries(policy).filter(([name, v]) => name !== "name" && v !== null && defaults[name] !== v);
  return [String(policy.name), ...settings.map(([name, v]) => `${name} ${String(v)}`)].join(", ");
}
