import { expect, it } from "vitest";
import type { Model } from "./api";
import { byName, matches } from "./grouping";
import { portLabel, summary } from "./parity";

const model = (name: string, version: number, changes: Partial<Model> = {}) =>
  ({ name, version, aliases: [], used_by: [], tags: {}, created_at: version, stage: "none", ...changes }) as unknown as Model;

it("groups versions by name, with the aliases and services of all versions", () => {
  const summaries = byName([
    model("digits", 1, { aliases: ["old"], used_by: ["svc"] }),
    model("digits", 3, { aliases: ["champion"], used_by: ["svc", "other"] }),
    model("words", 9),
  ]);
  expect(summaries.map(({ latest, versions }) => [latest.name, latest.version, versions])).toEqual([
    ["words", 9, 1],
    ["digits", 3, 2],
  ]);
  expect(summaries[1]!.aliases).toEqual([
    { alias: "old", version: 1 },
    { alias: "champion", version: 3 },
  ]);
  expect(summaries[1]!.services).toEqual(["svc", "other"]);
});

it("matches all words of a search", () => {
  const [summaryOfDigits] = byName([model("digits", 1, { aliases: ["champion"], tags: { team: "vision" }, framework: "PyTorch" })]);
  for (const search of ["", "DIG", "champion pytorch", "team:vision"]) expect(matches(summaryOfDigits!, search)).toBe(true);
  expect(matches(summaryOfDigits!, "digits audio")).toBe(false);
});

it("summarizes a parity report", () => {
  const output = { name: "y", max_abs: 1e-7, max_rel: 1e-6, different: 0, of: 40 };
  const cases = [
    { name: "a", batch: 1, outputs: [output] },
    { name: "b", batch: 4, outputs: [{ ...output, max_abs: 3e-7, different: 2 }] },
  ];
  expect(summary({ passed: false, rtol: 0, atol: 0, cases })).toEqual({ worst: 3e-7, compared: 80, different: 2 });
  expect(portLabel({ name: "x", dtype: "float32", shape: ["batch", 1, null] })).toBe("float32 [batch, 1, ?]");
});
