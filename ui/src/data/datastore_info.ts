// Where data is and how far it has come, in words. Pure.

import type { Datastore, Transfer } from "./api";

const KINDS: Record<string, string> = {
  folder: "Folder",
  s3: "S3",
  gcs: "Google Cloud Storage",
  azure_blob: "Azure blobs",
  azure_data_lake_gen2: "Azure Data Lake Gen2",
  runs: "Files of runs",
};

export function kindWords(kind: string): string {
  return KINDS[kind] ?? kind;
}

/** The place in one line; of a configuration only names that say where, never anything else of it. */
export function whereWords({ kind, configuration }: Pick<Datastore, "kind" | "configuration">): string {
  const text = (name: string) => (typeof configuration[name] === "string" ? (configuration[name] as string) : "");
  if (kind === "folder") return text("path");
  if (kind === "runs") return "what runs left, to be read";
  const bucket = text("bucket") || [text("account_name"), text("container_name") || text("filesystem")].filter(Boolean).join("/");
  const inside = [bucket, text("prefix")].filter(Boolean).join("/");
  const at = text("endpoint") || text("region");
  return at ? `${inside} (${at})` : inside;
}

export const CREDENTIALS: Record<Datastore["credentials"], string> = {
  none: "needs none",
  kept: "kept by the yard",
  environment: "from the yard's environment",
};

/** "a/b/c" as steps to go back along: its folders, each with its path. */
export function crumbs(path: string): { name: string; path: string }[] {
  const steps = path.split("/").filter(Boolean);
  return steps.map((name, i) => ({ name, path: steps.slice(0, i + 1).join("/") }));
}

export function lastStep(path: string): string {
  return path.replace(/\/+$/, "").split("/").pop() ?? path;
}

/** How much of a transfer is done, of 100; null while it is not known how much there is. */
export function percent({ bytes, bytes_done, files, files_done, state }: Transfer): number | null {
  if (state === "done") return 100;
  if (bytes) return Math.min(100, (100 * bytes_done) / bytes);
  if (files) return Math.min(100, (100 * files_done) / files);
  return null;
}

/** Seconds that are left if it goes on as it did; null where that says nothing. */
export function secondsLeft({ bytes, bytes_done, seconds, state }: Transfer): number | null {
  if (state !== "running" || !bytes || bytes_done <= 0 || seconds < 1) return null;
  return ((bytes - bytes_done) / bytes_done) * seconds;
}
