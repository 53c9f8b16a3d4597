import { expect, it } from "vitest";
import { tokenizePython } from "./python_tokens";

const tokenize = (...lines: string[]) => {
  const of = tokenizePython(lines);
  return lines.map((_, i) => of(i).map(({ kind, text }) => (kind ? `${kind}:${text}` : text)));
};

it("recognizes names, strings, numbers and comments", () => {
  expect(tokenize('def f(x=1.5):  # "why"')[0]).toEqual([
    "keyword:def", " ", "name:f", "(", "x", "=", "number:1.5", "):  ", 'comment:# "why"',
  ]);
  expect(tokenize("a = f'it {b}' # c")[0]).toEqual(["a", " = ", "string:f'it {b}'", " ", "comment:# c"]);
});

it("recognizes multi-line strings", () => {
  expect(tokenize('x = """one', "import two", 'three""" + 4')).toEqual([
    ["x", " = ", 'string:"""', "string:one"],
    ["string:import two"],
    ['string:three"""', " + ", "number:4"],
  ]);
});

it("keeps all characters", () => {
  for (const line of ["", "   ", "lambda: <b>&amp;</b>", "x = 'open", '"""doc""" # "', "é = 3_000j"]) {
    expect(tokenize(line)[0]!.map((t) => t.replace(/^(keyword|string|number|comment|name):/, "")).join("")).toBe(line);
  }
});
