import { expect, it } from "vitest";
import type { Model } from "./api";
import { byName, matches } from "./grouping";
import { portWords, summary } from "./parity";

const model = (name: string, version: number, more: Partial<Model> = {}) =>
  ({ name, version, aliases: [], used_by: [], tags: {}, created_at: version, stage: "none", ...more }) as unknown as Model;

it("has one line for each name, with the names and services of all its versions", () => {
  const found = byName([
    model("digits", 1, { aliases: ["old"], used_by: ["svc"] }),
    model("digits", 3, { aliases: ["champion"], used_by: ["svc", "other"] }),
    model("words", 9),
  ]);
  expect(found.map((one) => [one.latest.name, one.latest.version, one.versions])).toEqual([
    ["words", 9, 1],
    ["digits", 3, 2],
  ]);
  expect(found[1]!.aliases).toEqual([
    { alias: "old", version: 1 },
    { alias: "champion", version: 3 },
  ]);
  expect(found[1]!.services).toEqual(["svc", "other"]);
});

it("finds a model by every word of it", () => {
  const [one] = byName([model("digits", 1, { aliases: ["champion"], tags: { team: "vision" }, framework: "PyTorch" })]);
  for (const sought of ["", "DIG", "champion pytorch", "team:vision"]) expect(matches(one!, sought)).toBe(true);
  expect(matches(one!, "digits audio")).toBe(false);
});

it("sums up how far an exported model is from the original", () => {
  const output = { name: "y", max_abs: 1e-7, max_rel: 1e-6, different: 0, of: 40 };
  const cases = [
    { name: "a", batch: 1, outputs: [output] },
    { name: "b", batch: 4, outputs: [{ ...output, max_abs: 3e-7, different: 2 }] },
  ];
  expect(summary({ passed: false, rtol: 0, atol: 0, cases })).toEqual({ worst: 3e-7, compared: 80, different: 2 });
  expect(portWords({ name: "x", dtype: "float32", shape: ["batch", 1, null] })).toBe("float32 [batch, 1, ?]");
});
