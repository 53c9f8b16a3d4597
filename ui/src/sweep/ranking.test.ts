import { expect, test } from "vitest";
import type { Child, Sweep } from "./api";
import { asRow, chartedOf, formerOf, parameterNames, policyWords, progressOf, ranked, samplingWords } from "./ranking";

function child(number: number, best: number | null, more: Partial<Child> = {}): Child {
  return { number, run_id: `HD_${number}`, parameters: { "--lr": 0.1 }, status: "Completed", best, reports: 1, stopped: "", resumes: "", ...more };
}

function sweep(children: Child[], more: Partial<Sweep> = {}): Sweep {
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
    ...more,
  };
}

test("the best child comes first, whatever the goal, and those without a report come last", () => {
  const children = [child(0, 0.5), child(1, null), child(2, 0.9), child(3, null)];
  expect(ranked(sweep(children)).map((one) => one.number)).toEqual([2, 0, 3, 1]);
  expect(ranked(sweep(children, { goal: "minimize" })).map((one) => one.number)).toEqual([0, 2, 3, 1]);
});

test("progress counts what ended, and of an ended sweep there is no more to come", () => {
  const children = [child(0, 1), child(1, 1, { status: "Running" }), child(2, 1, { status: "Canceled", stopped: "why" })];
  expect(progressOf(sweep(children))).toEqual({ done: 2, running: 1, stopped: 1, failed: 0, total: 10 });
  expect(progressOf(sweep(children, { status: "Completed" })).total).toBe(3);
});

test("a child as a row has its values without dashes and its best as the metric", () => {
  const row = asRow(sweep([]), child(4, 0.25));
  expect(row.params).toEqual({ lr: 0.1 });
  expect(row.metrics).toEqual({ acc: 0.25 });
});

test("a line counts from its own child's beginning", () => {
  const children = [child(0, 1, { began_at: 1000 }), child(1, 2, { began_at: 1060, stopped: "why" }), child(2, null, { reports: 0 })];
  expect(chartedOf(sweep(children), children, 24).map((one) => [one.origin, one.label])).toEqual([
    [1000, "child 0"],
    [1060, "child 1 (stopped)"],
  ]);
});

test("parameters of nested spaces are all named", () => {
  const children = [child(0, 1, { parameters: { a: 1 } }), child(1, 1, { parameters: { b: 2, a: 3 } })];
  expect(parameterNames(sweep(children))).toEqual(["a", "b"]);
});

test("a policy is told without what was left as it is", () => {
  expect(policyWords(null)).toContain("none");
  expect(policyWords({ name: "Bandit", evaluation_interval: 2, delay_evaluation: 0, slack_factor: 0.1, slack_amount: null })).toBe(
    "Bandit, evaluation_interval 2, slack_factor 0.1",
  );
});

test("a child goes on from another of its sweep, or from a run elsewhere", () => {
  const near = child(5, 1, { resumes: "HD_3" });
  const far = child(6, 1, { resumes: "OTHER_3" });
  expect([formerOf(sweep([near]), near), formerOf(sweep([far]), far)]).toEqual(["child 3", "OTHER_3"]);
});

test("a population is told with its size", () => {
  const sampling = { name: "Population", space: {}, seed: 2, population: { size: 4 } };
  expect(samplingWords(sweep([], { sampling }))).toBe("Population of 4, seed 2");
  expect(samplingWords(sweep([]))).toBe("Random, seed 1");
});
