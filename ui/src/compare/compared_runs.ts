// Colors and selection of the compared runs.

import type { Row } from "../api/types";
import { seriesToken } from "../design/theme.svelte";
import { quote } from "../runs/query_text";

/** The color variable of each run. Hiding a run does not change the colors of others. */
export function colorTokens(rows: readonly Row[]): Map<string, string> {
  return new Map(rows.map((row, index) => [row.run_id, seriesToken(index)]));
}

export function queryForIds(ids: readonly string[]): string {
  return ids.map((id) => `id=${quote(id)}`).join(" or ");
}

/** The two runs to compare: those of the URL if they exist, else the first two. */
export function comparedPair(rows: readonly Row[], a: string | null, b: string | null): [string, string] | null {
  const ids = rows.map((row) => row.run_id);
  const first = a !== null && ids.includes(a) ? a : ids[0];
  const second = b !== null && ids.includes(b) && b !== first ? b : ids.find((id) => id !== first);
  return first !== undefined && second !== undefined ? [first, second] : null;
}
