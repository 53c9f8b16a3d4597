import { expect, it } from "vitest";
import css from "./base.css?raw";

const SHARED = [
  "button", "chip", "danger", "faint", "icon", "input", "mono", "number", "opening", "panel", "panels", "primary", "quiet", "roomy",
  "visually-hidden",
];

it("shares few classes: any other name of a component could be one of them by accident", () => {
  const selectors = css.replaceAll(/\/\*.*?\*\/|\{[^}]*\}/gs, " ");
  const names = new Set([...selectors.matchAll(/\.([a-z][\w-]*)/g)].map((match) => match[1]));
  expect([...names].sort()).toEqual(SHARED);
});
