import { expect, test } from "vitest";
import type { Child, Sweep } from "./api";
import { toRow, childSeries, resumedFrom, parameterNames, policyLabel, sweepProgress, rankChildren, samplingLabel } from "./ranking";

function child(number: number, best: number | null, changes: Partial<Child> = {}): Child {
  return { number, run_id: `HD_${number}`, parameters: { "--lr": 0.1 }, status: "Completed", best, reports: 1, stopped: "", resumes: "", error: "", began_at: null, ...changes };
}

function sweep(children: Child[], changes: Partial<Sweep> = {}): Sweep {
  return {
    sweep_id: "HD",
    status: "Running",
    doing: "",
    primary_metric: "acc",
    goal: "maximize",
    sampling: { name: "Random", space: {}, seed: 1 },
    policy: null,
    max_total_runs: 10,
    max_concurrent_runs: 2,
    max_duration_minutes: 60,
    best: null,
    children,
    resume_from: [],
    target: "local",
    study: "",
    ...changes,
  };
}

test("the best child is first for either goal, and children without a report are last", () => {
  const children = [child(0, 0.5), child(1, null), child(2, 0.9), child(3, null)];
  expect(rankChildren(sweep(children)).map((child) => child.number)).toEqual([2, 0, 3, 1]);
  expect(rankChildren(sweep(children, { goal: "minimize" })).map((child) => child.number)).toEqual([0, 2, 3, 1]);
});

test("progress counts finished children; a finished sweep has no further ones", () => {
  const children = [child(0, 1), child(1, 1, { status: "Running" }), child(2, 1, { status: "Canceled", stopped: "why" })];
  expect(sweepProgress(sweep(children))).toEqual({ done: 2, running: 1, stopped: 1, failed: 0, total: 10 });
  expect(sweepProgress(sweep(children, { status: "Completed" })).total).toBe(3);
});

test("a child row has its parameters without dashes and its best result as the metric", () => {
  const row = toRow(sweep([]), child(4, 0.25));
  expect(row.params).toEqual({ lr: 0.1 });
  expect(row.metrics).toEqual({ acc: 0.25 });
});

test("a chart line starts at the start of its child", () => {
  const children = [child(0, 1, { began_at: 1000 }), child(1, 2, { began_at: 1060, stopped: "why" }), child(2, null, { reports: 0 })];
  expect(childSeries(sweep(children), children, 24).map(({ origin, label }) => [origin, label])).toEqual([
    [1000, "child 0"],
    [1060, "child 1 (stopped)"],
  ]);
});

test("all parameters of nested spaces are listed", () => {
  const children = [child(0, 1, { parameters: { a: 1 } }), child(1, 1, { parameters: { b: 2, a: 3 } })];
  expect(parameterNames(sweep(children))).toEqual(["a", "b"]);
});

test("a policy is shown with its non-default settings", () => {
  expect(policyLabel(null)).toBe("none");
  expect(policyLabel({ name: "Bandit", evaluation_interval: 2, delay_evaluation: 0, slack_factor: 0.1, slack_amount: null })).toBe(
    "Bandit, evaluation_interval 2, slack_factor 0.1",
  );
});

test("a child resumes a child of its sweep, or a run of another one", () => {
  const sameSweep = child(5, 1, { resumes: "HD_3" });
  const otherSweep = child(6, 1, { resumes: "OTHER_3" });
  expect([resumedFrom(sweep([sameSweep]), sameSweep), resumedFrom(sweep([otherSweep]), otherSweep)]).toEqual(["child 3", "OTHER_3"]);
});

test("a population is shown with its size", () => {
  const sampling = { name: "Population", space: {}, seed: 2, population: { size: 4 } };
  expect(samplingLabel(sweep([], { sampling }))).toBe("Population of 4, seed 2");
  expect(samplingLabel(sweep([]))).toBe("Random, seed 1");
  expect(samplingLabel(sweep([], { study: "tune" }))).toBe("Optuna, study tune");
});
