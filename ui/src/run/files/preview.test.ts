import { expect, it } from "vitest";
import { lookOf } from "./preview";

it("a file is looked at as what its name says, and as text otherwise", () => {
  expect(lookOf("outputs/a.PNG")).toBe("image");
  expect(lookOf("outputs/sound.wav")).toBe("audio");
  expect(lookOf("t.csv")).toBe("table");
  expect(lookOf("metrics.json")).toBe("json");
  expect(["notes", "model.pt", "x.constructor", ".toString"].map(lookOf)).toEqual(["text", "text", "text", "text"]);
});
