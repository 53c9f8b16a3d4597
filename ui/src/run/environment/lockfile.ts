// The packages of a lock file with pip requirements or conda lines.

export interface Package {
  name: string;
  version: string;
  note: string; // the full line
}

export function parseLockfile(lock: string): Package[] {
  const packages = new Map<string, Package>();
  for (const line of lock.split("\n")) {
    const text = line.replace(/\s+--hash=\S+/g, "").replace(/\\$/, "").trim();
    if (!text || text.startsWith("#") || text.startsWith("-") || text.startsWith("@")) continue;
    const pinned = /^([\w.[\],-]+?)\s*(?:===?|@)\s*(\S+)/.exec(text);
    const conda = /^([\w.-]+)=([^=\s]+)(?:=\S+)?$/.exec(text);
    const [, name, version] = pinned ?? conda ?? [text, text, ""];
    if (name) packages.set(name, { name, version: version ?? "", note: text });
  }
  return [...packages.values()].sort((a, b) => a.name.localeCompare(b.name, "en", { sensitivity: "base" }));
}
