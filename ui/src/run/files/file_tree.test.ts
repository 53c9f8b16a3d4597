import { describe, expect, it } from "vitest";
import { buildTree, type TreeNode } from "./file_tree";

const names = (nodes: TreeNode[]): unknown[] =>
  nodes.map((node) => (node.folder ? [node.name, names(node.children)] : node.name));

const files = (...names: string[]) => names.map((name) => ({ name, size: 10 }));

describe("a tree of files", () => {
  it("sorts folders first, in natural order", () => {
    expect(names(buildTree(files("z.txt", "outputs/step_10.pt", "outputs/step_2.pt", "a.txt")))).toEqual([
      ["outputs", ["step_2.pt", "step_10.pt"]],
      "a.txt",
      "z.txt",
    ]);
  });

  it("merges folders with a single subfolder", () => {
    expect(names(buildTree(files("a/b/c/d.txt", "a/b/c/e.txt")))).toEqual([["a/b/c", ["d.txt", "e.txt"]]]);
  });

  it("sums sizes", () => {
    expect(buildTree(files("a/x", "a/b/y", "a/b/z"))[0]!.size).toBe(30);
  });

  it("handles unusual names", () => {
    expect(names(buildTree(files("__proto__/constructor", "/odd", "<b>/<i>")))).toEqual([
      ["__proto__", ["constructor"]],
      ["<b>", ["<i>"]],
      "odd",
    ]);
  });
});
