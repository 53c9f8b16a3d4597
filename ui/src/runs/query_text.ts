// Small changes of a query's text: what buttons and links of the table put into it. The yard parses; this only writes.

/** `experiment:digits`, quoted where the language would read something else. */
export function term(field: string, value: string): string {
  return `${field}:${quoted(value)}`;
}

export function quoted(value: string): string {
  if (/^[\w.+@/-]+$/.test(value) && !/^(and|or|not)$/i.test(value)) return value;
  return `"${value.replaceAll("\\", "\\\\").replaceAll('"', '\\"')}"`;
}

/** Adds a term, or takes it out when it is there already. */
export function toggled(query: string, wanted: string): string {
  const text = query.trim();
  if (text === wanted) return "";
  if (hasTerm(text, wanted)) return ` ${text} `.replace(` ${wanted} `, " ").trim();
  if (text === "") return wanted;
  return /\bor\b/i.test(text) ? `(${text}) ${wanted}` : `${text} ${wanted}`;
}

export function hasTerm(query: string, wanted: string): boolean {
  return ` ${query.trim()} `.includes(` ${wanted} `);
}

/** True for what somebody is in the middle of writing: it is not asked yet. The yard knows better, once it is. */
export function isUnfinished(query: string): boolean {
  const bare = query.replace(/"(?:[^"\\]|\\.)*"/g, "x");
  if (bare.includes('"')) return true;
  const opened = (bare.match(/\(/g) ?? []).length - (bare.match(/\)/g) ?? []).length;
  return opened > 0 || /[:<>=!~]\s*$/.test(bare) || /(^|[\s()])(or|and|not)\s*$/i.test(bare);
}

/** Text and caret after taking an offered completion. */
export function completed(query: string, from: number, to: number, option: string): { text: string; caret: number } {
  const text = query.slice(0, from) + option + query.slice(to);
  return { text, caret: from + option.length };
}

export const EXAMPLES: readonly { query: string; words: string }[] = [
  { query: "status:failed", words: "runs that failed" },
  { query: "experiment:digits lr>0.01", words: "of one experiment, by a parameter" },
  { query: "metrics.loss<0.3", words: "by the last value of a metric" },
  { query: "tags.team:vision", words: "by a tag" },
  { query: "created>2d not status:canceled", words: "of the last two days, but not these" },
  { query: "duration>1h or status:running", words: "long ones, and those that still run" },
];
