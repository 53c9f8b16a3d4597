import { expect, it } from "vitest";
import { MAX_SELECTED, Selection } from "./selection";

it("round-trips through text", () => {
  const selection = new Selection(["a", "b"]);
  expect(Selection.fromText(selection.toText()).ids).toEqual(["a", "b"]);
  expect(Selection.fromText(null).size).toBe(0);
});

it("toggles runs", () => {
  expect(new Selection(["a"]).toggle("b").toggle("a").ids).toEqual(["b"]);
});

it("is limited", () => {
  const many = Array.from({ length: MAX_SELECTED + 5 }, (_, i) => `r${i}`);
  expect(new Selection(many).size).toBe(MAX_SELECTED);
});
