// Parses unified diffs into lines with their numbers on both sides.

export interface DiffLine {
  kind: "same" | "added" | "removed" | "gap";
  a: number | null;
  b: number | null;
  text: string;
}

const HUNK = /^@@ -(\d+)(?:,\d+)? \+(\d+)(?:,\d+)? @@ ?(.*)$/;

export function diffLines(diff: string): DiffLine[] {
  const lines: DiffLine[] = [];
  let a = 0;
  let b = 0;
  let inHunk = false;
  for (const line of diff.replace(/\n$/, "").split("\n")) {
    const hunk = HUNK.exec(line);
    if (hunk) {
      [a, b, inHunk] = [Number(hunk[1]), Number(hunk[2]), true];
      lines.push({ kind: "gap", a: null, b: null, text: hunk[3] ?? "" });
    } else if (!inHunk || line.startsWith("\\")) continue; // the header, and "no newline at end of file"
    else if (line.startsWith("+")) lines.push({ kind: "added", a: null, b: b++, text: line.slice(1) });
    else if (line.startsWith("-")) lines.push({ kind: "removed", a: a++, b: null, text: line.slice(1) });
    else lines.push({ kind: "same", a: a++, b: b++, text: line.slice(1) });
  }
  return lines;
}

/** Numbers of added and removed lines. */
export function changeCounts(lines: DiffLine[]): { added: number; removed: number } {
  const count = (kind: DiffLine["kind"]) => lines.filter((line) => line.kind === kind).length;
  return { added: count("added"), removed: count("removed") };
}
