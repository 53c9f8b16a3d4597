import { describe, expect, it } from "vitest";
import type { Row } from "../api/types";
import { axisNames, change, chartedNames, differences } from "./differences";
import { round, scaleOf } from "./scale";

function row(params: Row["params"], metrics: Row["metrics"]): Row {
  return {
    run_id: "r",
    number: 1,
    experiment: "digits",
    name: null,
    display_name: null,
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

  it("tell what differs from what is the same", () => {
    const [params] = differences(rows);
    expect(params?.lines.map((line) => [line.title, line.differs])).toEqual([
      ["lr", true],
      ["seed", false],
    ]);
  });

  it("count a value that one run lacks as a difference", () => {
    const metrics = differences(rows)[1];
    expect(metrics?.lines.find((line) => line.title === "note")).toMatchObject({ differs: true, values: ["x", null] });
  });

  it("make axes of what differs, and charts of what is a number", () => {
    expect(axisNames(rows)).toEqual(["params.lr", "metrics.loss", "metrics.note"]);
    expect(chartedNames(rows)).toEqual(["loss"]);
    expect(chartedNames([row({}, { loss: "NaN" })])).toEqual(["loss"]);
  });

  it("are told against the first run", () => {
    expect(change(1, 2)).toBe("−50 %");
    expect(change(2.1, 2)).toBe("+5.0 %");
    expect(change(200, 2)).toBe("×100");
    expect(change(1, 0)).toBe("");
    expect(change("a", 1)).toBe("");
  });
});

describe("scales", () => {
  it("put numbers between the least and the greatest", () => {
    const scale = scaleOf([10, 20, 15]);
    expect(scale.kind).toBe("linear");
    expect([10, 15, 20].map(scale.place)).toEqual([0, 0.5, 1]);
    expect(scale.place(null)).toBeNull();
  });

  it("go by powers of ten where numbers span many", () => {
    const scale = scaleOf([1e-5, 1e-3, 1e-1]);
    expect(scale.kind).toBe("log");
    expect(scale.place(1e-3)).toBeCloseTo(0.5);
    expect(scale.ticks.length).toBe(5);
  });

  it("put words in their order, numbers in words by their size", () => {
    expect(scaleOf(["b", "a"]).ticks.map((tick) => tick.text)).toEqual(["a", "b"]);
    expect(scaleOf(["10", "9", "x"]).ticks.map((tick) => tick.text)).toEqual(["9", "10", "x"]);
  });

  it("have room where there is one value only", () => {
    expect(scaleOf([3, 3]).place(3)).toBe(0.5);
    expect(scaleOf([0]).place(0)).toBe(0.5);
    expect(scaleOf(["x"]).place("x")).toBe(0.5);
  });

  it("leave out what is no number among numbers", () => {
    const scale = scaleOf([1, 2, "NaN"]);
    expect(scale.kind).toBe("linear");
    expect(scale.place("NaN")).toBeNull();
  });

  it("write round numbers", () => {
    expect(round(0, 1)).toEqual([0, 0.2, 0.4, 0.6, 0.8, 1]);
    expect(round(0.12, 0.31)).toEqual([0.15, 0.2, 0.25, 0.3]);
  });
});
