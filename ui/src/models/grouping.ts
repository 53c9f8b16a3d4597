// Groups model versions by name, and searches them.

import type { Model } from "./api";

export interface ModelSummary {
  latest: Model;
  versions: number;
  aliases: { alias: string; version: number }[];
  services: string[];
}

/** One summary per name, newest first. */
export function byName(models: readonly Model[]): ModelSummary[] {
  const groups = new Map<string, Model[]>();
  for (const model of models) groups.set(model.name, [...(groups.get(model.name) ?? []), model]);
  return [...groups.values()]
    .map((versions) => ({
      latest: versions.reduce((a, b) => (b.version > a.version ? b : a)),
      versions: versions.length,
      aliases: versions.flatMap(({ aliases, version }) => aliases.map((alias) => ({ alias, version }))),
      services: [...new Set(versions.flatMap((model) => model.used_by))],
    }))
    .sort((a, b) => b.latest.created_at - a.latest.created_at || a.latest.name.localeCompare(b.latest.name));
}

/** True if every word of `search` occurs in the model. */
export function matches({ latest, aliases, services }: ModelSummary, search: string): boolean {
  const tags = Object.entries(latest.tags).map(([tag, value]) => `${tag}:${value ?? ""}`);
  const text = [latest.name, latest.framework, latest.stage, latest.description, latest.run_id, latest.experiment, ...tags]
    .concat(aliases.map(({ alias }) => alias), services)
    .join("\n")
    .toLowerCase();
  return search.toLowerCase().split(/\s+/).every((word) => text.includes(word));
}
