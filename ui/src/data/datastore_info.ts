// Labels and paths of datastores.

import type { Datastore } from "./api";

const KINDS: Record<string, string> = {
  folder: "Folder",
  s3: "S3",
  gcs: "Google Cloud Storage",
  azure_blob: "Azure Blob Storage",
  azure_data_lake_gen2: "Azure Data Lake Gen2",
  runs: "Run files",
};

export function kindLabel(kind: string): string {
  return KINDS[kind] ?? kind;
}

/** The location in one line, from selected configuration entries only: others may be secret. */
export function locationLabel({ kind, configuration }: Pick<Datastore, "kind" | "configuration">): string {
  const text = (name: string) => (typeof configuration[name] === "string" ? (configuration[name] as string) : "");
  if (kind === "folder") return text("path");
  if (kind === "runs") return "files of all runs, read-only";
  const bucket = text("bucket") || [text("account_name"), text("container_name") || text("filesystem")].filter(Boolean).join("/");
  const inside = [bucket, text("prefix")].filter(Boolean).join("/");
  const region = text("endpoint") || text("region");
  return region ? `${inside} (${region})` : inside;
}

export const CREDENTIALS: Record<Datastore["credentials"], string> = {
  none: "not required",
  kept: "stored by the yard",
  environment: "from the yard's environment",
};

/** The folders of "a/b/c", each with its path. */
export function breadcrumbs(path: string): { name: string; path: string }[] {
  const names = path.split("/").filter(Boolean);
  return names.map((name, i) => ({ name, path: names.slice(0, i + 1).join("/") }));
}

export function baseName(path: string): string {
  return path.replace(/\/+$/, "").split("/").pop() ?? path;
}
