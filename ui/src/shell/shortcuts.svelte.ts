// Shortcuts. A page says what its keys do while it is shown; the help lists exactly those that work now.

export interface Shortcut {
  keys: string[]; // as KeyboardEvent.key says them; "g r" is one after the other
  words: string;
  run: (event: KeyboardEvent) => void;
}

const TOGETHER_MS = 900;
const PRESSED = "a, button, input, summary, [role=option], [role=menuitem]";

class Keys {
  groups = $state.raw<{ title: string; shortcuts: Shortcut[] }[]>([]);
  #groups: { title: string; shortcuts: Shortcut[] }[] = []; // plain: an effect that adds to it must not wait on it
  #before = "";
  #at = 0;

  constructor() {
    if (typeof document !== "undefined") document.addEventListener("keydown", (event) => this.#pressed(event));
  }

  /** Call in an `$effect` and return what it returns, so that the keys go with the page. */
  use(title: string, shortcuts: Shortcut[]): () => void {
    const group = { title, shortcuts };
    this.groups = this.#groups = [...this.#groups, group];
    return () => {
      this.groups = this.#groups = this.#groups.filter((other) => other !== group);
    };
  }

  #pressed(event: KeyboardEvent): void {
    if (event.defaultPrevented || event.metaKey || event.ctrlKey || event.altKey || isTyping(event.target)) return;
    if (document.querySelector("dialog[open]")) return;
    if (isForItself(event)) return;
    const now = performance.now();
    const both = now - this.#at < TOGETHER_MS ? `${this.#before} ${event.key}` : "";
    this.#before = event.key;
    this.#at = now;
    // the page that came last is on top: its keys win
    for (const group of [...this.#groups].reverse()) {
      const found = group.shortcuts.find((s) => (both && s.keys.includes(both)) || s.keys.includes(event.key));
      if (found) {
        event.preventDefault();
        found.run(event);
        return;
      }
    }
  }
}

/** Enter and Space press the button or link that has the focus: a shortcut must not take them away. */
function isForItself({ key, target }: KeyboardEvent): boolean {
  return (key === "Enter" || key === " ") && target instanceof Element && target.closest(PRESSED) !== null;
}

function isTyping(target: EventTarget | null): boolean {
  if (!(target instanceof HTMLElement)) return false;
  if (target instanceof HTMLInputElement) return !["checkbox", "radio", "range", "button"].includes(target.type);
  return target.isContentEditable || target instanceof HTMLTextAreaElement || target instanceof HTMLSelectElement;
}

export const keys = new Keys();
