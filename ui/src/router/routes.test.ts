import { expect, it } from "vitest";
import { compareAddress, datasetAddress, datastoreAddress, fromMlflow, match, modelAddress, runAddress, serviceAddress } from "./routes";

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

it("finds models, services and data by the addresses that it gave them, whatever they are called", () => {
  const page = (address: string) => match(new URL(address, "http://here").pathname);
  for (const name of ["digits", "a/b", "100%", "ä ö"]) {
    expect(page(modelAddress(name, 3))).toEqual({ page: "model", name });
    expect(page(serviceAddress(name))).toEqual({ page: "service", name });
    expect(page(datastoreAddress(name, "a/b c"))).toEqual({ page: "datastore", name });
    expect(page(datasetAddress({ name, version: 2 }))).toEqual({ page: "dataset", name });
  }
  expect(datasetAddress({ name: null, dataset_id: "x" })).toBe("/data/datasets/-?id=x");
  expect(match("/data/elsewhere/x")).toEqual({ page: "nowhere", path: "/data/elsewhere/x" });
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
