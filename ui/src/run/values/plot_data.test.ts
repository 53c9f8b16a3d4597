import { describe, expect, it } from "vitest";
import { barsOf, matrixOf, precisionRecallOf, predictionsOf, rocOf, sheetOf } from "./plot_data";

const logged = (...values: unknown[]) => values.map((value) => ({ step: null, time: 0, rank: 0, value }));

describe("rows and tables", () => {
  it("of one name are one table", () => {
    expect(sheetOf(logged({ x: [1], y: [2] }, { x: [3, 4], z: ["a", "b"] }))).toEqual({
      columns: ["x", "y", "z"],
      rows: [
        [1, 2, null],
        [3, null, "a"],
        [4, null, "b"],
      ],
    });
  });

  it("of something else are empty", () => {
    expect(sheetOf(logged(null, "text"))).toEqual({ columns: [], rows: [] });
  });
});

describe("a confusion matrix", () => {
  it("has shares of each true class, with or without the document around it", () => {
    const data = { class_labels: ["cat", "dog"], matrix: [[3, 1], [0, 0]] };
    const found = matrixOf(data)!;
    expect(found.shares).toEqual([[0.75, 0.25], [0, 0]]);
    expect(matrixOf({ schema_type: "confusion_matrix", schema_version: "v1", data })).toEqual(found);
    expect(matrixOf({})).toBeNull();
  });
});

describe("an accuracy table", () => {
  // thresholds 0, 0.5, 1 of a classifier that is always right
  const right = { class_labels: ["a"], probability_tables: [[[5, 5, 0, 0], [5, 0, 5, 0], [0, 0, 5, 5]]] };

  it("of somebody who is always right has the whole area", () => {
    expect(rocOf(right)[0]!.area).toBeCloseTo(1, 9);
    expect(precisionRecallOf(right)[0]!.points).toEqual([[1, 0.5], [1, 1]]);
  });

  it("of somebody who guesses has half of it", () => {
    const guess = { class_labels: ["a"], probability_tables: [[[4, 4, 0, 0], [2, 2, 2, 2], [0, 0, 4, 4]]] };
    expect(rocOf(guess)[0]!.area).toBeCloseTo(0.5, 9);
  });
});

describe("bins", () => {
  it("are bars between their edges", () => {
    expect(barsOf({ bin_edges: [0, 1, 3], bin_counts: [4, 2] })).toEqual([
      { from: 0, to: 1, count: 4 },
      { from: 1, to: 3, count: 2 },
    ]);
  });

  it("of predictions stand at the middle of their bin", () => {
    const value = { bin_averages: [1, "NaN"], bin_errors: [0.1, 0], bin_counts: [3, 0], bin_edges: [0, 2, 4] };
    expect(predictionsOf(value)).toEqual([{ x: 1, y: 1, error: 0.1, count: 3 }]);
  });
});
