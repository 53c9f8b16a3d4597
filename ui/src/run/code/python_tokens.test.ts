import { expect, it } from "vitest";
import { tokensOf } from "./python_tokens";

const shown = (...lines: string[]) => {
  const of = tokensOf(lines);
  return lines.map((_, i) => of(i).map(({ kind, text }) => (kind ? `${kind}:${text}` : text)));
};

it("names, strings, numbers and comments are told apart", () => {
  expect(shown('def f(x=1.5):  # "why"')[0]).toEqual([
    "keyword:def", " ", "name:f", "(", "x", "=", "number:1.5", "):  ", 'comment:# "why"',
  ]);
  expect(shown("a = f'it {b}' # c")[0]).toEqual(["a", " = ", "string:f'it {b}'", " ", "comment:# c"]);
});

it("a string over several lines is one", () => {
  expect(shown('x = """one', "import two", 'three""" + 4')).toEqual([
    ["x", " = ", 'string:"""', "string:one"],
    ["string:import two"],
    ['string:three"""', " + ", "number:4"],
  ]);
});

it("nothing of a line is lost", () => {
  for (const line of ["", "   ", "lambda: <b>&amp;</b>", "x = 'open", '"""doc""" # "', "é = 3_000j"]) {
    expect(shown(line)[0]!.map((t) => t.replace(/^(keyword|string|number|comment|name):/, "")).join("")).toBe(line);
  }
});
