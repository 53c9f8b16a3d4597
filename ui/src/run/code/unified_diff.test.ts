import { describe, expect, it } from "vitest";
import { changeCounts, diffLines } from "./unified_diff";

const DIFF = `--- a/train.py
+++ b/train.py
@@ -1,3 +1,4 @@ def train():
 import os
-lr = 0.1
+lr = 0.01
+--- not a head
 print(lr)
@@ -20 +21 @@
-last
\\ No newline at end of file
+last
`;

describe("a unified diff", () => {
  it("numbers lines on both sides", () => {
    expect(diffLines(DIFF).map((line) => [line.kind, line.a, line.b, line.text])).toEqual([
      ["gap", null, null, "def train():"],
      ["same", 1, 1, "import os"],
      ["removed", 2, null, "lr = 0.1"],
      ["added", null, 2, "lr = 0.01"],
      ["added", null, 3, "--- not a head"],
      ["same", 3, 4, "print(lr)"],
      ["gap", null, null, ""],
      ["removed", 20, null, "last"],
      ["added", null, 21, "last"],
    ]);
  });

  it("counts changed lines", () => {
    expect(changeCounts(diffLines(DIFF))).toEqual({ added: 3, removed: 2 });
    expect(diffLines("")).toEqual([]);
  });
});
