// The children of a sweep in order, and as the rows that the views of Compare draw.

import { hasEnded, type Row } from "../api/types";
import type { Charted } from "../charts/chart_lines";
import { seriesToken } from "../design/theme.svelte";
import type { Child, Sweep } from "./api";

/** The best first; those without a report at the end, the newest of them first. */
export function ranked(sweep: Sweep): Child[] {
  const sign = sweep.goal === "maximize" ? 1 : -1;
  return [...sweep.children].sort((a, b) => {
    if (a.best !== null && b.best !== null) return sign * (b.best - a.best) || a.number - b.number;
    if (a.best !== null || b.best !== null) return a.best !== null ? -1 : 1;
    return b.number - a.number;
  });
}

/** The first of the children as lines of their metric; those that were stopped are grey. */
export function chartedOf(sweep: Sweep, children: readonly Child[], most: number): Charted[] {
  return children
    .filter((child) => child.reports > 0 || child.status === "Running")
    .slice(0, most)
    .map((child) => ({
      runId: child.run_id,
      name: sweep.primary_metric,
      label: `child ${child.number}${child.stopped ? " (stopped)" : ""}`,
      colour: child.stopped ? "--off" : seriesToken(child.number),
      origin: child.began_at ?? 0,
    }));
}

/** What every child has reached, to be compared: a better result is as new as one more. */
export function resultsOf(sweep: Sweep): string {
  return sweep.children.map((child) => `${child.number}:${child.best}`).join();
}

/** How values are chosen, in one line. */
export function samplingWords({ sampling }: Sweep): string {
  const many = sampling.population ? ` of ${sampling.population.size}` : "";
  return `${sampling.name}${many}, seed ${sampling.seed}`;
}

/** The child whose outputs this one goes on from; one of another sweep by its whole name. */
export function formerOf(sweep: Sweep, child: Child): string {
  const mine = `${sweep.sweep_id}_`;
  return child.resumes.startsWith(mine) ? `child ${child.resumes.slice(mine.length)}` : child.resumes;
}

/** The names of all parameters, in the order in which they are first met. */
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

export function progressOf(sweep: Sweep): Progress {
  const ended = sweep.children.filter((child) => hasEnded(child.status));
  return {
    done: ended.length,
    running: sweep.children.length - ended.length,
    stopped: ended.filter((child) => child.stopped !== "").length,
    failed: ended.filter((child) => child.status === "Failed").length,
    total: hasEnded(sweep.status) ? sweep.children.length : sweep.max_total_runs,
  };
}

/** A child as a row: its values as parameters, its best as the metric. */
export function asRow(sweep: Sweep, child: Child): Row {
  const params = Object.fromEntries(Object.entries(child.parameters).map(([name, v]) => [name.replace(/^-+/, ""), v]));
  return {
    run_id: child.run_id,
    number: child.number,
    experiment: `child ${child.number}`,
    name: null,
    display_name: null,
    status: child.status,
    target: sweep.target,
    type: null,
    parent_id: sweep.sweep_id,
    submitted_by: null,
    created_at: 0,
    started_at: null,
    ended_at: null,
    duration_s: null,
    nodes: null,
    ranks: null,
    reason: child.stopped || null,
    tags: {},
    params,
    metrics: { [sweep.primary_metric]: child.best },
  };
}

/** `Bandit, slack_factor 0.1, evaluation_interval 2`: what was said, without what was left as it is. */
export function policyWords(policy: Sweep["policy"]): string {
  if (!policy) return "none: every child runs to its end";
  const usual: Record<string, unknown> = { delay_evaluation: 0, truncation_percentage: 0, brackets: 1, reduction_factor: 3 };
  const said = Object.entries(policy).filter(([name, v]) => name !== "name" && v !== null && usual[name] !== v);
  return [policy.name, ...said.map(([name, v]) => `${name} ${String(v)}`)].join(", ");
}
