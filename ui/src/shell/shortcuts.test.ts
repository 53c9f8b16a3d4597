import { beforeAll, expect, it, vi } from "vitest";

// the few parts of a document that keys need
class FakeElement {
  constructor(readonly tag = "") {}
  closest = (selector: string) => (selector.split(", ").includes(this.tag) ? this : null);
}

let press: (key: string, target: FakeElement) => KeyboardEvent;
const open = vi.fn();

beforeAll(async () => {
  let heard: (event: KeyboardEvent) => void = () => {};
  for (const name of ["Element", "HTMLElement"]) vi.stubGlobal(name, FakeElement);
  for (const name of ["HTMLInputElement", "HTMLTextAreaElement", "HTMLSelectElement"]) vi.stubGlobal(name, class {});
  vi.stubGlobal("document", { addEventListener: (_: string, on: typeof heard) => (heard = on), querySelector: () => null });
  const { keys } = await import("./shortcuts.svelte");
  keys.use("Runs", [{ keys: ["Enter", " ", "x"], words: "", run: open }]);
  press = (key, target) => {
    const event = { key, target, preventDefault: vi.fn() } as unknown as KeyboardEvent;
    heard(event);
    return event;
  };
});

it("leaves Enter and Space to the button or link that has the focus", () => {
  for (const tag of ["a", "button", "input", "summary"]) {
    for (const key of ["Enter", " "]) expect(press(key, new FakeElement(tag)).preventDefault).not.toHaveBeenCalled();
  }
  expect(open).not.toHaveBeenCalled();
});

it("has them for the table, and all other keys everywhere", () => {
  for (const key of ["Enter", " "]) expect(press(key, new FakeElement("div")).preventDefault).toHaveBeenCalled();
  press("x", new FakeElement("button"));
  expect(open).toHaveBeenCalledTimes(3);
});
