// Edits of the query text by buttons and links. The server parses it.

/** `experiment:digits`, quoted if necessary. */
export function term(field: string, value: string): string {
  return `${field}:${quote(value)}`;
}

export function quote(value: string): string {
  if (/^[\w.+@/-]+$/.test(value) && !/^(and|or|not)$/i.test(value)) return value;
  return `"${value.replaceAll("\\", "\\\\").replaceAll('"', '\\"')}"`;
}

/** Adds a term, or removes it if present. */
export function toggleTerm(query: string, term: string): string {
  const text = query.trim();
  if (text === term) return "";
  if (hasTerm(text, term)) return ` ${text} `.replace(` ${term} `, " ").trim();
  if (text === "") return term;
  return /\bor\b/i.test(text) ? `(${text}) ${term}` : `${text} ${term}`;
}

export function hasTerm(query: string, term: string): boolean {
  return ` ${query.trim()} `.includes(` ${term} `);
}

/** True while a query is obviously incomplete, so that it is not sent yet. */
export function isUnfinished(query: string): boolean {
  const bare = query.replace(/"(?:[^"\\]|\\.)*"/g, "x");
  if (bare.includes('"')) return true;
  const openParentheses = (bare.match(/\(/g) ?? []).length - (bare.match(/\)/g) ?? []).length;
  return openParentheses > 0 || /[:<>=!~]\s*$/.test(bare) || /(^|[\s()])(or|and|not)\s*$/i.test(bare);
}

/** Text and caret position after a completion. */
export function applyCompletion(query: string, from: number, to: number, option: string): { text: string; caret: number } {
  const text = query.slice(0, from) + option + query.slice(to);
  return { text, caret: from + option.length };
}

export const EXAMPLES: readonly { query: string; description: string }[] = [
  { query: "status:failed", description: "failed runs" },
  { query: "experiment:digits lr>0.01", description: "one experiment, filtered by a parameter" },
  { query: "metrics.loss<0.3", description: "last value of a metric" },
  { query: "tags.team:vision", description: "tag" },
  { query: "created>2d not status:canceled", description: "last two days, without canceled runs" },
  { query: "duration>1h or status:running", description: "long or running" },
];
