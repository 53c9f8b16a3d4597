// Runs as lines: each has a colour for all views of the page.

import type { Row } from "../api/types";
import { seriesToken } from "../design/theme.svelte";
import { quoted } from "../runs/query_text";

/** The token of each run's colour. Hiding a run changes the colour of no other. */
export function colouring(rows: readonly Row[]): Map<string, string> {
  return new Map(rows.map((row, at) => [row.run_id, seriesToken(at)]));
}

export function queryOf(ids: readonly string[]): string {
  return ids.map((id) => `id=${quoted(id)}`).join(" or ");
}

/** The two runs that a difference is shown of: those of the address if they are here, else the first two. */
export function pairOf(rows: readonly Row[], a: string | null, b: string | null): [string, string] | null {
  const ids = rows.map((row) => row.run_id);
  const first = a !== null && ids.includes(a) ? a : ids[0];
  const second = b !== null && ids.includes(b) && b !== first ? b : ids.find((id) => id !== first);
  return first !== undefined && second !== undefined ? [first, second] : null;
}
