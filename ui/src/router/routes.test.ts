import { expect, it } from "vitest";
import { compareAddress, fromMlflow, match, runAddress } from "./routes";

it("knows its pages", () => {
  expect(match("/")).toEqual({ page: "runs" });
  expect(match("/runs/")).toEqual({ page: "runs" });
  expect(match("/computes")).toEqual({ page: "computes" });
  expect(match("/elsewhere/x")).toEqual({ page: "nowhere", path: "/elsewhere/x" });
});

it("finds a run by the address that it gave it, whatever its id", () => {
  for (const id of ["digits_1_a", "a/b", "100%", "ä ö"]) expect(match(runAddress(id))).toEqual({ page: "run", id });
  expect(match("/runs/100%")).toEqual({ page: "run", id: "100%" });
});

it("compares by one address", () => {
  expect(compareAddress(["a", "b"])).toBe("/compare?runs=a,b");
});

it("follows the links that MLflow's client prints", () => {
  expect(fromMlflow("#/experiments/digits/runs/digits_1_a")).toBe("/runs/digits_1_a");
  expect(fromMlflow("#/experiments/digits")).toBe(`/runs?q=${encodeURIComponent('experiment:"digits"')}`);
  expect(fromMlflow("#/experiments/0")).toBe(`/runs?q=${encodeURIComponent('experiment:"Default"')}`);
  for (const other of ["", "#", "#logs", "#/elsewhere"]) expect(fromMlflow(other)).toBeNull();
});
