import { describe, expect, it } from "vitest";
import type { Field, Row } from "../api/types";
import { splitName } from "../format/name";
import { cellText, columnOf, columnsFromText, columnsToText, defaultColumns, runDuration, title, valueOf } from "./columns";

const fields: Field[] = [
  { name: "status", kind: "text", runs: 9 },
  { name: "params.lr", kind: "number", runs: 9 },
  { name: "params.model", kind: "text", runs: 3 },
  { name: "params.depth", kind: "number", runs: 4 },
  { name: "params.rare", kind: "text", runs: 1 },
  { name: "metrics.loss", kind: "number", runs: 9 },
  { name: "tags.team", kind: "text", runs: 2 },
];

function row(changes: Partial<Row> = {}): Row {
  return {
    run_id: "digits_1_a",
    number: 1,
    experiment: "digits",
    name: null,
    display_name: "",
    status: "Running",
    target: "local",
    type: null,
    parent_id: null,
    submitted_by: null,
    created_at: 1000,
    started_at: 1010,
    ended_at: null,
    duration_s: null,
    nodes: 1,
    ranks: 1,
    reason: "",
    tags: { team: "vision" },
    params: { lr: 0.1, model: "small" },
    metrics: { loss: 0.03125 },
    ...changes,
  };
}

describe("columns", () => {
  it("shows common columns and the most frequent parameters and metrics by default", () => {
    const names = defaultColumns(fields, 1900);
    expect(names.slice(0, 2)).toEqual(["status", "name"]);
    expect(names.at(-1)).toBe("reason");
    expect(names).toContain("metrics.loss");
    expect(names.filter((n) => n.startsWith("params."))).toEqual(["params.lr", "params.depth", "params.model", "params.rare"]);
  });

  it("shows fewer columns on narrow screens, but at least one of each", () => {
    const names = defaultColumns(fields, 700);
    expect(names.filter((n) => n.includes("."))).toEqual(["params.lr", "metrics.loss"]);
  });

  it("keeps the end of a long id", () => {
    expect(splitName("vision-transformer_1794789785_0000270f")).toEqual(["vision-transformer_1794789785_", "0000270f"]);
    expect(splitName("trial 7")).toEqual(["trial 7", ""]);
  });

  it("escapes commas and tildes in names", () => {
    const names = ["metrics.a,b", "metrics.a~.b", "params.x"];
    expect(columnsFromText(columnsToText(names))).toEqual(names);
  });

  it("ignores duplicate columns", () => {
    expect(columnsFromText("name,status,name")).toEqual(["name", "status"]);
  });

  it("detects numeric columns, and treats unknown ones as text", () => {
    expect(columnOf("params.lr", fields).kind).toBe("number");
    expect(columnOf("params.model", fields).kind).toBe("text");
    expect(columnOf("nonsense", fields)).toMatchObject({ kind: "text", sortable: false });
  });

  it("reads parameters, metrics and tags whose names contain dots", () => {
    expect(valueOf(row({ metrics: { "val.loss": 2 } }), "metrics.val.loss")).toBe(2);
    expect(valueOf(row(), "tags.team")).toBe("vision");
    expect(valueOf(row(), "params.none")).toBeNull();
  });

  it("computes the duration of unfinished runs", () => {
    expect(runDuration(row(), 1020)).toBe(10);
    expect(runDuration(row({ started_at: null }), 1020)).toBeNull();
    expect(runDuration(row({ ended_at: 1015, duration_s: 5 }), 9999)).toBe(5);
    expect(cellText(row(), columnOf("duration_s", fields), 1020)).toBe("10.0 s");
  });

  it("titles a run by its display name, else by its id", () => {
    expect(title(row())).toBe("digits_1_a");
    expect(title(row({ display_name: "baseline" }))).toBe("baseline");
  });
});
