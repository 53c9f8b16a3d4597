import { expect, it } from "vitest";
import { baseName, breadcrumbs, locationLabel } from "./datastore_info";

it("shows the location of a datastore without its secrets", () => {
  expect(locationLabel({ kind: "folder", configuration: { path: "/srv/data" } })).toBe("/srv/data");
  const s3 = { bucket: "lab", prefix: "images", region: "eu-1", secret_access_key: "never" };
  expect(locationLabel({ kind: "s3", configuration: s3 })).toBe("lab/images (eu-1)");
  const azure = { account_name: "lab", container_name: "images", account_key: "never" };
  expect(locationLabel({ kind: "azure_blob", configuration: azure })).toBe("lab/images");
  expect(locationLabel({ kind: "runs", configuration: {} })).toBe("files of all runs, read-only");
});

it("splits a path into breadcrumbs", () => {
  expect(breadcrumbs("a/b c/d")).toEqual([
    { name: "a", path: "a" },
    { name: "b c", path: "a/b c" },
    { name: "d", path: "a/b c/d" },
  ]);
  expect(breadcrumbs("")).toEqual([]);
  expect(baseName("a/b/")).toBe("b");
});
