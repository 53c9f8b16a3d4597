import { beforeAll, expect, it, vi } from "vitest";

// the parts of a document that the shortcuts use
class FakeElement {
  constructor(readonly tag = "") {}
  closest = (selector: string) => (selector.split(", ").includes(this.tag) ? this : null);
}

let press: (key: string, target: FakeElement) => KeyboardEvent;
const open = vi.fn();

beforeAll(async () => {
  let listener: (event: KeyboardEvent) => void = () => {};
  for (const name of ["Element", "HTMLElement"]) vi.stubGlobal(name, FakeElement);
  for (const name of ["HTMLInputElement", "HTMLTextAreaElement", "HTMLSelectElement"]) vi.stubGlobal(name, class {});
  vi.stubGlobal("document", { addEventListener: (_: string, on: typeof listener) => (listener = on), querySelector: () => null });
  const { shortcuts } = await import("./shortcuts.svelte");
  shortcuts.use("Runs", [{ keys: ["Enter", " ", "x"], label: "", run: open }]);
  press = (key, target) => {
    const event = { key, target, preventDefault: vi.fn() } as unknown as KeyboardEvent;
    listener(event);
    return event;
  };
});

it("leaves Enter and Space to the focused button or link", () => {
  for (const tag of ["a", "button", "input", "summary"]) {
    for (const key of ["Enter", " "]) expect(press(key, new FakeElement(tag)).preventDefault).not.toHaveBeenCalled();
  }
  expect(open).not.toHaveBeenCalled();
});

it("handles them elsewhere, and all other keys everywhere", () => {
  for (const key of ["Enter", " "]) expect(press(key, new FakeElement("div")).preventDefault).toHaveBeenCalled();
  press("x", new FakeElement("button"));
  expect(open).toHaveBeenCalledTimes(3);
});
