import { expect, it } from "vitest";
import { compareHref, datasetHref, datastoreHref, hrefFromMlflow, match, modelHref, runHref, serviceHref } from "./routes";

it("matches the pages", () => {
  expect(match("/")).toEqual({ page: "runs" });
  expect(match("/runs/")).toEqual({ page: "runs" });
  expect(match("/computes")).toEqual({ page: "computes" });
  expect(match("/elsewhere/x")).toEqual({ page: "notFound", path: "/elsewhere/x" });
});

it("round-trips run ids with any characters", () => {
  for (const id of ["digits_1_a", "a/b", "100%", "ä ö"]) expect(match(runHref(id))).toEqual({ page: "run", id });
  expect(match("/runs/100%")).toEqual({ page: "run", id: "100%" });
});

it("round-trips names of models, services and data with any characters", () => {
  const page = (href: string) => match(new URL(href, "http://localhost").pathname);
  for (const name of ["digits", "a/b", "100%", "ä ö"]) {
    expect(page(modelHref(name, 3))).toEqual({ page: "model", name });
    expect(page(serviceHref(name))).toEqual({ page: "service", name });
    expect(page(datastoreHref(name, "a/b c"))).toEqual({ page: "datastore", name });
    expect(page(datasetHref({ name, version: 2 }))).toEqual({ page: "dataset", name });
  }
  expect(datasetHref({ name: null, dataset_id: "x" })).toBe("/data/datasets/-?id=x");
  expect(match("/data/elsewhere/x")).toEqual({ page: "notFound", path: "/data/elsewhere/x" });
});

it("lists compared runs in the URL", () => {
  expect(compareHref(["a", "b"])).toBe("/compare?runs=a,b");
});

it("translates the links that MLflow's client prints", () => {
  expect(hrefFromMlflow("#/experiments/digits/runs/digits_1_a")).toBe("/runs/digits_1_a");
  expect(hrefFromMlflow("#/experiments/digits")).toBe(`/runs?q=${encodeURIComponent('experiment:"digits"')}`);
  expect(hrefFromMlflow("#/experiments/0")).toBe(`/runs?q=${encodeURIComponent('experiment:"Default"')}`);
  expect(hrefFromMlflow("#/models/net/versions/3?tab=x")).toBe("/models/net?version=3");
  expect(hrefFromMlflow("#/models/net")).toBe("/models/net");
  expect(hrefFromMlflow("#/models")).toBe("/models");
  for (const other of ["", "#", "#logs", "#/elsewhere"]) expect(hrefFromMlflow(other)).toBeNull();
});
