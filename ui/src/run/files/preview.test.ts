import { expect, it } from "vitest";
import { previewKind } from "./preview";

it("uses the extension, and text by default", () => {
  expect(previewKind("outputs/a.PNG")).toBe("image");
  expect(previewKind("outputs/sound.wav")).toBe("audio");
  expect(previewKind("t.csv")).toBe("table");
  expect(previewKind("metrics.json")).toBe("json");
  expect(["notes", "model.pt", "x.constructor", ".toString"].map(previewKind)).toEqual(["text", "text", "text", "text"]);
});
