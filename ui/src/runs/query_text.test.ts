import { expect, it } from "vitest";
import { applyCompletion, hasTerm, isUnfinished, term, toggleTerm } from "./query_text";

it("quotes values with special characters or keywords", () => {
  expect(term("experiment", "digits")).toBe("experiment:digits");
  expect(term("experiment", "two words")).toBe('experiment:"two words"');
  expect(term("experiment", "or")).toBe('experiment:"or"');
  expect(term("experiment", 'a "b"')).toBe('experiment:"a \\"b\\""');
});

it("adds and removes a term", () => {
  expect(toggleTerm("", "status:failed")).toBe("status:failed");
  expect(toggleTerm("lr>1", "status:failed")).toBe("lr>1 status:failed");
  expect(toggleTerm("status:failed lr>1", "status:failed")).toBe("lr>1");
});

it("puts parentheses around `or`", () => {
  expect(toggleTerm("a or b", "status:failed")).toBe("(a or b) status:failed");
});

it("does not match part of a longer term", () => {
  expect(hasTerm("status:failed2", "status:failed")).toBe(false);
});

it("inserts a completion and moves the caret after it", () => {
  expect(applyCompletion("lr>1 sta x", 5, 8, "status:")).toEqual({ text: "lr>1 status: x", caret: 12 });
});

it("detects incomplete terms, parentheses and quotes", () => {
  for (const text of ["lr>", "status:", "a or", "not ", "(a or b", 'name:"two wo']) expect(isUnfinished(text)).toBe(true);
  for (const text of ["", "lr>1", "(a or b)", 'name:"a:"', "tags.or:x", "floor"]) expect(isUnfinished(text)).toBe(false);
});
