/** A long name in two parts, the second always shown: ids differ at their end. */
export function parted(name: string): [string, string] {
  return name.length > 24 ? [name.slice(0, -8), name.slice(-8)] : [name, ""];
}

/** "digits:3" is version 3 of digits; a name may have a colon in it. */
export function nameAndVersion(id: string): { name: string; version: string } {
  const at = id.lastIndexOf(":");
  return at < 0 ? { name: id, version: "" } : { name: id.slice(0, at), version: id.slice(at + 1) };
}
