// A unified diff as lines with the numbers that they have on both sides.

export interface DiffLine {
  kind: "same" | "added" | "removed" | "gap";
  a: number | null;
  b: number | null;
  text: string;
}

const HUNK = /^@@ -(\d+)(?:,\d+)? \+(\d+)(?:,\d+)? @@ ?(.*)$/;

export function diffLines(diff: string): DiffLine[] {
  const found: DiffLine[] = [];
  let a = 0;
  let b = 0;
  let inside = false;
  for (const line of diff.replace(/\n$/, "").split("\n")) {
    const hunk = HUNK.exec(line);
    if (hunk) {
      [a, b, inside] = [Number(hunk[1]), Number(hunk[2]), true];
      found.push({ kind: "gap", a: null, b: null, text: hunk[3] ?? "" });
    } else if (!inside || line.startsWith("\\")) continue; // the head, and "no newline at end of file"
    else if (line.startsWith("+")) found.push({ kind: "added", a: null, b: b++, text: line.slice(1) });
    else if (line.startsWith("-")) found.push({ kind: "removed", a: a++, b: null, text: line.slice(1) });
    else found.push({ kind: "same", a: a++, b: b++, text: line.slice(1) });
  }
  return found;
}

/** How much changed: "+12 −3". */
export function changeCounts(lines: DiffLine[]): { added: number; removed: number } {
  const count = (kind: DiffLine["kind"]) => lines.filter((line) => line.kind === kind).length;
  return { added: count("added"), removed: count("removed") };
}
