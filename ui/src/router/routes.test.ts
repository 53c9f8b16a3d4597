import { expect, it } from "vitest";
import { compareAddress, match, runAddress } from "./routes";

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
