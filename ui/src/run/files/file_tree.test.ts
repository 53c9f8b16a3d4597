import { describe, expect, it } from "vitest";
import { treeOf, type Branch } from "./file_tree";

const shown = (branches: Branch[]): unknown[] =>
  branches.map((branch) => (branch.folder ? [branch.name, shown(branch.children)] : branch.name));

const files = (...names: string[]) => names.map((name) => ({ name, size: 10 }));

describe("a tree of files", () => {
  it("has folders first, and numbers in the order of counting", () => {
    expect(shown(treeOf(files("z.txt", "outputs/step_10.pt", "outputs/step_2.pt", "a.txt")))).toEqual([
      ["outputs", ["step_2.pt", "step_10.pt"]],
      "a.txt",
      "z.txt",
    ]);
  });

  it("puts folders that hold one folder only in one line", () => {
    expect(shown(treeOf(files("a/b/c/d.txt", "a/b/c/e.txt")))).toEqual([["a/b/c", ["d.txt", "e.txt"]]]);
  });

  it("adds up sizes", () => {
    expect(treeOf(files("a/x", "a/b/y", "a/b/z"))[0]!.size).toBe(30);
  });

  it("knows names that look like something else", () => {
    expect(shown(treeOf(files("__proto__/constructor", "/odd", "<b>/<i>")))).toEqual([
      ["__proto__", ["constructor"]],
      ["<b>", ["<i>"]],
      "odd",
    ]);
  });
});
