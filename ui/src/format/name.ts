/** Splits a long name; the second part is always visible because ids differ at their end. */
export function splitName(name: string): [string, string] {
  return name.length > 24 ? [name.slice(0, -8), name.slice(-8)] : [name, ""];
}

/** "digits:3" is version 3 of digits; a name may contain a colon. */
export function nameAndVersion(id: string): { name: string; version: string } {
  const colon = id.lastIndexOf(":");
  return colon < 0 ? { name: id, version: "" } : { name: id.slice(0, colon), version: id.slice(colon + 1) };
}
