// Short names for the generated API types. `scripts/ui_types.py` writes schema.d.ts from the server's OpenAPI document.

import type { components } from "./schema";

export type Schemas = components["schemas"];

export type Status = Schemas["RunState"];
export type Value = string | number | boolean | null;
export type Row = Schemas["TableRow"];
export type Table = Schemas["TablePage"];
export type Field = Schemas["FieldView"];
export type Completion = Schemas["Completion"];
export type End = Schemas["EndView"];
export type RunView = Schemas["RunView"];
export type Series = Schemas["SeriesView"];
export type Compute = Schemas["Compute"];
export type CodeChange = Schemas["CodeChange"];
export type PackageChange = Schemas["PackageChange"];

const ENDED: ReadonlySet<Status> = new Set<Status>(["Completed", "Failed", "Canceled"]);

export function hasEnded(status: Status): boolean {
  return ENDED.has(status);
}

/** A number, or a text that stands for a number that JSON lacks. */
export function isNumeric(value: Value | undefined): boolean {
  return typeof value === "number" || value === "NaN" || value === "Infinity" || value === "-Infinity";
}
