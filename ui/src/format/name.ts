/** A long name in two parts, the second always shown: ids differ at their end. */
export function parted(name: string): [string, string] {
  return name.length > 24 ? [name.slice(0, -8), name.slice(-8)] : [name, ""];
}
