// The packages of a lock: requirements as pip freezes them, or lines of conda.

export interface Package {
  name: string;
  version: string;
  note: string; // the line as it is
}

export function packagesOf(lock: string): Package[] {
  const found = new Map<string, Package>();
  for (const line of lock.split("\n")) {
    const text = line.replace(/\s+--hash=\S+/g, "").replace(/\\$/, "").trim();
    if (!text || text.startsWith("#") || text.startsWith("-") || text.startsWith("@")) continue;
    const pinned = /^([\w.[\],-]+?)\s*(?:===?|@)\s*(\S+)/.exec(text);
    const conda = /^([\w.-]+)=([^=\s]+)(?:=\S+)?$/.exec(text);
    const [, name, version] = pinned ?? conda ?? [text, text, ""];
    if (name) found.set(name, { name, version: version ?? "", note: text });
  }
  return [...found.values()].sort((a, b) => a.name.localeCompare(b.name, "en", { sensitivity: "base" }));
}
