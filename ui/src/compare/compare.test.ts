import { describe, expect, it } from "vitest";
import type { Row } from "../api/types";
import { axisNames, change, chartableNames, differences } from "./differences";
import { createScale, roundTicks } from "./scale";

function row(params: Row["params"], metrics: Row["metrics"]): Row {
  return {
    run_id: "r",
    number: 1,
    experiment: "digits",
    name: null,
    display_name: "",
    status: "Completed",
    target: "local",
    type: null,
    parent_id: null,
    submitted_by: null,
    created_at: 0,
    started_at: 0,
    ended_at: 1,
    duration_s: 1,
    nodes: 1,
    ranks: 1,
    reason: "",
    tags: {},
    params,
    metrics,
  };
}

describe("differences", () => {
  const rows = [row({ lr: 0.1, seed: 1 }, { loss: 2, note: "x" }), row({ lr: 0.2, seed: 1 }, { loss: 1 })];

  it("mark the fields that differ", () => {
    const [params] = differences(rows);
    expect(params?.lines.map((line) => [line.title, line.differs])).toEqual([
      ["lr", true],
      ["seed", false],
    ]);
  });

  it("include values that one run lacks", () => {
    const metrics = differences(rows)[1];
    expect(metrics?.lines.find((line) => line.title === "note")).toMatchObject({ differs: true, values: ["x", null] });
  });

  it("give axes for fields that differ and charts for numeric metrics", () => {
    expect(axisNames(rows)).toEqual(["params.lr", "metrics.loss", "metrics.note"]);
    expect(chartableNames(rows)).toEqual(["loss"]);
    expect(chartableNames([row({}, { loss: "NaN" })])).toEqual(["loss"]);
  });

  it("are relative to the first run", () => {
    expect(change(1, 2)).toBe("−50 %");
    expect(change(2.1, 2)).toBe("+5.0 %");
    expect(change(200, 2)).toBe("×100");
    expect(change(1, 0)).toBe("");
    expect(change("a", 1)).toBe("");
  });
});

describe("scales", () => {
  it("map numbers linearly between minimum and maximum", () => {
    const scale = createScale([10, 20, 15]);
    expect(scale.kind).toBe("linear");
    expect([10, 15, 20].map(scale.position)).toEqual([0, 0.5, 1]);
    expect(scale.position(null)).toBeNull();
  });

  it("are logarithmic for numbers over several decades", () => {
    const scale = createScale([1e-5, 1e-3, 1e-1]);
    expect(scale.kind).toBe("log");
    expect(scale.position(1e-3)).toBeCloseTo(0.5);
    expect(scale.ticks.length).toBe(5);
  });

  it("sort categories, with numbers by value", () => {
    expect(createScale(["b", "a"]).ticks.map((tick) => tick.text)).toEqual(["a", "b"]);
    expect(createScale(["10", "9", "x"]).ticks.map((tick) => tick.text)).toEqual(["9", "10", "x"]);
  });

  it("center a single value", () => {
    expect(createScale([3, 3]).position(3)).toBe(0.5);
    expect(createScale([0]).position(0)).toBe(0.5);
    expect(createScale(["x"]).position("x")).toBe(0.5);
  });

  it("ignore NaN among numbers", () => {
    const scale = createScale([1, 2, "NaN"]);
    expect(scale.kind).toBe("linear");
    expect(scale.position("NaN")).toBeNull();
  });

  it("have round ticks", () => {
    expect(roundTicks(0, 1)).toEqual([0, 0.2, 0.4, 0.6, 0.8, 1]);
    expect(roundTicks(0.12, 0.31)).toEqual([0.15, 0.2, 0.25, 0.3]);
  });
});
