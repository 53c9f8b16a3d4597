import { describe, expect, it } from "vitest";
import { sheetOf } from "./csv";

describe("a table in a text file", () => {
  it("has its columns and rows, quoted cells and all", () => {
    expect(sheetOf('a,b\n1,"x, ""y"""\n2,"two\nlines"\n')).toEqual({
      columns: ["a", "b"],
      rows: [
        ["1", 'x, "y"'],
        ["2", "two\nlines"],
      ],
      more: false,
    });
  });

  it("may be of tabs or semicolons, from Windows, and without a last newline", () => {
    expect(sheetOf("a\tb\r\n1\t2\r\n").rows).toEqual([["1", "2"]]);
    expect(sheetOf("\ufeffa;b\n1,5;2").columns).toEqual(["a", "b"]);
    expect(sheetOf("\ufeffa;b\n1,5;2").rows).toEqual([["1,5", "2"]]);
  });

  it("says that there is more, and shows no half row", () => {
    const long = `n\n${Array.from({ length: 900 }, (_, i) => i).join("\n")}\n`;
    expect(sheetOf(long, 100)).toMatchObject({ more: true, rows: { length: 100 } });
    expect(sheetOf("a,b\n1,2\n3,", 100, true)).toMatchObject({ more: true, rows: [["1", "2"]] });
  });

  it("of nothing is nothing", () => {
    expect(sheetOf("")).toEqual({ columns: [], rows: [], more: false });
  });
});
