import { expect, it } from "vitest";
import { MOST_CHOSEN, Selection } from "./selection";

it("goes into the address and comes back", () => {
  const some = new Selection(["a", "b"]);
  expect(Selection.fromText(some.toText()).ids).toEqual(["a", "b"]);
  expect(Selection.fromText(null).size).toBe(0);
});

it("chooses and unchooses", () => {
  expect(new Selection(["a"]).toggled("b").toggled("a").ids).toEqual(["b"]);
});

it("stops where the address would grow without end", () => {
  const many = Array.from({ length: MOST_CHOSEN + 5 }, (_, i) => `r${i}`);
  expect(new Selection(many).size).toBe(MOST_CHOSEN);
});
