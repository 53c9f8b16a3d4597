import { expect, it } from "vitest";
import type { Transfer } from "./api";
import { crumbs, lastStep, percent, secondsLeft, whereWords } from "./datastore_info";

const transfer = (more: Partial<Transfer>) =>
  ({ state: "running", bytes: null, bytes_done: 0, files: null, files_done: 0, seconds: 0, ...more }) as Transfer;

it("says where a datastore is, and nothing of its secrets", () => {
  expect(whereWords({ kind: "folder", configuration: { path: "/srv/data" } })).toBe("/srv/data");
  const s3 = { bucket: "lab", prefix: "images", region: "eu-1", secret_access_key: "never" };
  expect(whereWords({ kind: "s3", configuration: s3 })).toBe("lab/images (eu-1)");
  const azure = { account_name: "lab", container_name: "images", account_key: "never" };
  expect(whereWords({ kind: "azure_blob", configuration: azure })).toBe("lab/images");
});

it("leads back through folders", () => {
  expect(crumbs("a/b c/d")).toEqual([
    { name: "a", path: "a" },
    { name: "b c", path: "a/b c" },
    { name: "d", path: "a/b c/d" },
  ]);
  expect(crumbs("")).toEqual([]);
  expect(lastStep("a/b/")).toBe("b");
});

it("tells how far a transfer is, and how long it still takes", () => {
  expect(percent(transfer({}))).toBeNull();
  expect(percent(transfer({ bytes: 200, bytes_done: 50 }))).toBe(25);
  expect(percent(transfer({ files: 4, files_done: 1 }))).toBe(25);
  expect(percent(transfer({ state: "done" }))).toBe(100);
  expect(secondsLeft(transfer({ bytes: 200, bytes_done: 50, seconds: 10 }))).toBe(30);
  expect(secondsLeft(transfer({ bytes: 200, bytes_done: 0, seconds: 10 }))).toBeNull();
});

it("the files of runs are no place that anybody configured", () => {
  expect(whereWords({ kind: "runs", configuration: {} })).toBe("what runs left, to be read");
});
