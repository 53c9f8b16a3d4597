import { describe, expect, it } from "vitest";
import { parseBins, parseMatrix, precisionRecallCurves, parsePredictions, rocCurves, mergeTables } from "./plot_data";

const logged = (...values: unknown[]) => values.map((value) => ({ step: null, time: 0, rank: 0, value }));

describe("rows and tables", () => {
  it("are concatenated", () => {
    expect(mergeTables(logged({ x: [1], y: [2] }, { x: [3, 4], z: ["a", "b"] }))).toEqual({
      columns: ["x", "y", "z"],
      rows: [
        [1, 2, null],
        [3, null, "a"],
        [4, null, "b"],
      ],
    });
  });

  it("of other values are empty", () => {
    expect(mergeTables(logged(null, "text"))).toEqual({ columns: [], rows: [] });
  });
});

describe("a confusion matrix", () => {
  it("is normalized by true class, with or without the schema document", () => {
    const data = { class_labels: ["cat", "dog"], matrix: [[3, 1], [0, 0]] };
    const matrix = parseMatrix(data)!;
    expect(matrix.shares).toEqual([[0.75, 0.25], [0, 0]]);
    expect(parseMatrix({ schema_type: "confusion_matrix", schema_version: "v1", data })).toEqual(matrix);
    expect(parseMatrix({})).toBeNull();
  });
});

describe("an accuracy table", () => {
  // thresholds 0, 0.5, 1 of a perfect classifier
  const perfect = { class_labels: ["a"], probability_tables: [[[5, 5, 0, 0], [5, 0, 5, 0], [0, 0, 5, 5]]] };

  it("of a perfect classifier has area 1", () => {
    expect(rocCurves(perfect)[0]!.area).toBeCloseTo(1, 9);
    expect(precisionRecallCurves(perfect)[0]!.points).toEqual([[1, 0.5], [1, 1]]);
  });

  it("of random guesses has area 0.5", () => {
    const guess = { class_labels: ["a"], probability_tables: [[[4, 4, 0, 0], [2, 2, 2, 2], [0, 0, 4, 4]]] };
    expect(rocCurves(guess)[0]!.area).toBeCloseTo(0.5, 9);
  });
});

describe("bins", () => {
  it("become bars between their edges", () => {
    expect(parseBins({ bin_edges: [0, 1, 3], bin_counts: [4, 2] })).toEqual([
      { from: 0, to: 1, count: 4 },
      { from: 1, to: 3, count: 2 },
    ]);
  });

  it("of predictions are centered", () => {
    const value = { bin_averages: [1, "NaN"], bin_errors: [0.1, 0], bin_counts: [3, 0], bin_edges: [0, 2, 4] };
    expect(parsePredictions(value)).toEqual([{ x: 1, y: 1, error: 0.1, count: 3 }]);
  });
});
