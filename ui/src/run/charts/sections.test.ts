import { expect, it } from "vitest";
import type { Series } from "../../api/types";
import { sectionsOf } from "./sections";

const one = (name: string, more: Partial<Series> = {}): Series => ({
  name, kind: "scalar", count: 10, last: 1, min: 0, max: 1, ...more,
});

it("metrics stand under what is before their slash, each kind in its place", () => {
  const found = sectionsOf(
    [one("train/loss"), one("accuracy", { count: 1 }), one("train/cm", { kind: "confusion_matrix" }),
     one("phase", { last: "warm-up", min: null, max: null })],
    "",
  );
  expect(found.map((section) => [section.name, section.all])).toEqual([["train", 2], ["", 2]]);
  expect(found[1]!.singles.map((s) => s.name)).toEqual(["accuracy"]);
  expect(found[1]!.values.map((s) => s.name)).toEqual(["phase"]);
  expect(found[0]!.charts.map((s) => s.name)).toEqual(["train/loss"]);
  expect(found[0]!.values.map((s) => s.name)).toEqual(["train/cm"]);
});

it("only those are shown that were looked for", () => {
  expect(sectionsOf([one("train/Loss"), one("lr")], " loss ").map((s) => s.name)).toEqual(["train"]);
});
