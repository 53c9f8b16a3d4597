import { expect, it } from "vitest";
import { completed, hasTerm, isUnfinished, term, toggled } from "./query_text";

it("quotes what the language would read otherwise", () => {
  expect(term("experiment", "digits")).toBe("experiment:digits");
  expect(term("experiment", "two words")).toBe('experiment:"two words"');
  expect(term("experiment", "or")).toBe('experiment:"or"');
  expect(term("experiment", 'a "b"')).toBe('experiment:"a \\"b\\""');
});

it("adds a term and takes it out again", () => {
  expect(toggled("", "status:failed")).toBe("status:failed");
  expect(toggled("lr>1", "status:failed")).toBe("lr>1 status:failed");
  expect(toggled("status:failed lr>1", "status:failed")).toBe("lr>1");
});

it("keeps what `or` joins together", () => {
  expect(toggled("a or b", "status:failed")).toBe("(a or b) status:failed");
});

it("takes a part of a longer term for no term", () => {
  expect(hasTerm("status:failed2", "status:failed")).toBe(false);
});

it("puts a completion where it belongs, and the caret after it", () => {
  expect(completed("lr>1 sta x", 5, 8, "status:")).toEqual({ text: "lr>1 status: x", caret: 12 });
});

it("waits for the rest of a word, a bracket or a quote", () => {
  for (const text of ["lr>", "status:", "a or", "not ", "(a or b", 'name:"two wo']) expect(isUnfinished(text)).toBe(true);
  for (const text of ["", "lr>1", "(a or b)", 'name:"a:"', "tags.or:x", "floor"]) expect(isUnfinished(text)).toBe(false);
});
