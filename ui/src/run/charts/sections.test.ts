import { expect, it } from "vitest";
import type { Series } from "../../api/types";
import { groupSeries } from "./sections";

const series = (name: string, changes: Partial<Series> = {}): Series => ({
  name, kind: "scalar", count: 10, last: 1, min: 0, max: 1, ...changes,
});

it("groups by prefix and kind", () => {
  const sections = groupSeries(
    [series("train/loss"), series("accuracy", { count: 1 }), series("train/cm", { kind: "confusion_matrix" }),
     series("phase", { last: "warm-up", min: null, max: null })],
    "",
  );
  expect(sections.map((section) => [section.name, section.all])).toEqual([["train", 2], ["", 2]]);
  expect(sections[1]!.singles.map((s) => s.name)).toEqual(["accuracy"]);
  expect(sections[1]!.values.map((s) => s.name)).toEqual(["phase"]);
  expect(sections[0]!.charts.map((s) => s.name)).toEqual(["train/loss"]);
  expect(sections[0]!.values.map((s) => s.name)).toEqual(["train/cm"]);
});

it("shows a metric that is NaN as a number", () => {
  const [section] = groupSeries([series("a", { count: 1, last: "NaN", min: null }), series("b", { last: "Infinity", min: null })], "");
  expect([section!.singles.map((s) => s.name), section!.charts.map((s) => s.name)]).toEqual([["a"], ["b"]]);
});

it("filters by name", () => {
  expect(groupSeries([series("train/Loss"), series("lr")], " loss ").map((s) => s.name)).toEqual(["train"]);
});
