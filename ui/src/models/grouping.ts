// The versions of all models, as one line for each name. Pure.

import type { Model } from "./api";

export interface Named {
  latest: Model;
  versions: number;
  aliases: { alias: string; version: number }[];
  services: string[];
}

/** By what changed last. */
export function byName(models: readonly Model[]): Named[] {
  const groups = new Map<string, Model[]>();
  for (const model of models) groups.set(model.name, [...(groups.get(model.name) ?? []), model]);
  return [...groups.values()]
    .map((versions) => ({
      latest: versions.reduce((a, b) => (b.version > a.version ? b : a)),
      versions: versions.length,
      aliases: versions.flatMap(({ aliases, version }) => aliases.map((alias) => ({ alias, version }))),
      services: [...new Set(versions.flatMap((one) => one.used_by))],
    }))
    .sort((a, b) => b.latest.created_at - a.latest.created_at || a.latest.name.localeCompare(b.latest.name));
}

/** Every word that is sought is somewhere in it. */
export function matches({ latest, aliases, services }: Named, sought: string): boolean {
  const tags = Object.entries(latest.tags).map(([tag, value]) => `${tag}:${value ?? ""}`);
  const has = [latest.name, latest.framework, latest.stage, latest.description, latest.run_id, latest.experiment, ...tags]
    .concat(aliases.map((one) => one.alias), services)
    .join("\n")
    .toLowerCase();
  return sought.toLowerCase().split(/\s+/).every((word) => has.includes(word));
}
