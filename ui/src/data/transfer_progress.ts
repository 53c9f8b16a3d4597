// Progress of uploads and downloads.

import type { Transfer } from "./api";

/** Completed percentage of a transfer; null while its size is unknown. */
export function percent({ bytes, bytes_done, files, files_done, state }: Transfer): number | null {
  if (state === "done") return 100;
  if (bytes) return Math.min(100, (100 * bytes_done) / bytes);
  if (files) return Math.min(100, (100 * files_done) / files);
  return null;
}

/** Estimated remaining seconds; null if there is no meaningful estimate. */
export function secondsLeft({ bytes, bytes_done, seconds, state }: Transfer): number | null {
  if (state !== "running" || !bytes || bytes_done <= 0 || seconds < 1) return null;
  return ((bytes - bytes_done) / bytes_done) * seconds;
}
