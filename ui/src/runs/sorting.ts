// Sort keys as in the URL and the API: "-metrics.loss,created_at".

export interface SortKey {
  name: string;
  descending: boolean;
}

export const NEWEST_FIRST = "-created_at";

export function parseSort(text: string): SortKey[] {
  return text
    .split(",")
    .filter(Boolean)
    .map((key) => (key.startsWith("-") ? { name: key.slice(1), descending: true } : { name: key, descending: false }));
}

export function sortText(sorting: readonly SortKey[]): string {
  return sorting.map((s) => (s.descending ? "-" : "") + s.name).join(",");
}

/**
 * The sort order after a click on a column header: first the natural direction, then the opposite, then none. With
 * `add`, the other keys are kept before it.
 */
export function nextSort(text: string, name: string, numeric: boolean, add: boolean): string {
  const keys = parseSort(text);
  const current = keys.find((s) => s.name === name);
  const others = add ? keys.filter((s) => s.name !== name) : [];
    if (!current) return sortText([...others, { name, descending: numeric }]);
  if (current.descending === numeric && (add || keys.length === 1)) {
    const reversed = { name, descending: !numeric };
    return add ? sortText(keys.map((s) => (s.name === name ? reversed : s))) : sortText([reversed]);
  }
  if (!add && keys.length > 1) return sortText([{ name, descending: numeric }]);
  return sortText(others) || NEWEST_FIRST;
}

export function ariaSort(text: string, name: string): "ascending" | "descending" | "none" {
  const primary = parseSort(text)[0];
  if (primary?.name !== name) return "none";
  return primary.descending ? "descending" : "ascending";
}
