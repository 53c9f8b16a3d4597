// Sorting as the address and the yard say it: "-metrics.loss,created_at".

export interface Sorting {
  name: string;
  descending: boolean;
}

export const NEWEST_FIRST = "-created_at";

export function parseSort(text: string): Sorting[] {
  return text
    .split(",")
    .filter(Boolean)
    .map((word) => (word.startsWith("-") ? { name: word.slice(1), descending: true } : { name: word, descending: false }));
}

export function sortText(sorting: readonly Sorting[]): string {
  return sorting.map((s) => (s.descending ? "-" : "") + s.name).join(",");
}

/**
 * What a click on a column's head makes of the sorting: first its natural direction, then the other, then none. With
 * `add` the others stay before it.
 */
export function clicked(text: string, name: string, numeric: boolean, add: boolean): string {
  const now = parseSort(text);
  const there = now.find((s) => s.name === name);
  const others = add ? now.filter((s) => s.name !== name) : [];
  const first = numeric;
  if (!there) return sortText([...others, { name, descending: first }]);
  if (there.descending === first && (add || now.length === 1)) {
    const turned = { name, descending: !first };
    return add ? sortText(now.map((s) => (s.name === name ? turned : s))) : sortText([turned]);
  }
  if (!add && now.length > 1) return sortText([{ name, descending: first }]);
  return sortText(others) || NEWEST_FIRST;
}

export function ariaSort(text: string, name: string): "ascending" | "descending" | "none" {
  const found = parseSort(text)[0];
  if (found?.name !== name) return "none";
  return found.descending ? "descending" : "ascending";
}
