import { describe, expect, it } from "vitest";
import { parseCsv } from "./csv";

describe("a CSV table", () => {
  it("parses columns, rows and quoted cells", () => {
    expect(parseCsv('a,b\n1,"x, ""y"""\n2,"two\nlines"\n')).toEqual({
      columns: ["a", "b"],
      rows: [
        ["1", 'x, "y"'],
        ["2", "two\nlines"],
      ],
      truncated: false,
    });
  });

  it("detects tabs and semicolons, and accepts CRLF and a missing final newline", () => {
    expect(parseCsv("a\tb\r\n1\t2\r\n").rows).toEqual([["1", "2"]]);
    expect(parseCsv("\ufeffa;b\n1,5;2").columns).toEqual(["a", "b"]);
    expect(parseCsv("\ufeffa;b\n1,5;2").rows).toEqual([["1,5", "2"]]);
  });

  it("reports truncation and omits an incomplete last row", () => {
    const long = `n\n${Array.from({ length: 900 }, (_, i) => i).join("\n")}\n`;
    expect(parseCsv(long, 100)).toMatchObject({ truncated: true, rows: { length: 100 } });
    expect(parseCsv("a,b\n1,2\n3,", 100, true)).toMatchObject({ truncated: true, rows: [["1", "2"]] });
  });

  it("of an empty text is empty", () => {
    expect(parseCsv("")).toEqual({ columns: [], rows: [], truncated: false });
  });
});
