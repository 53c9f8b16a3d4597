// Keyboard shortcuts. Each page registers its own while it is shown; the help dialog lists those that are active.

export interface Shortcut {
  keys: string[]; // values of KeyboardEvent.key; "g r" is a sequence of two
  label: string;
  run: (event: KeyboardEvent) => void;
}

const SEQUENCE_MS = 900;
const ACTIVATABLE = "a, button, input, summary, [role=option], [role=menuitem]";

class Shortcuts {
  groups = $state.raw<{ title: string; shortcuts: Shortcut[] }[]>([]);
  #groups: { title: string; shortcuts: Shortcut[] }[] = []; // not reactive: an effect that registers a group must not depend on the list
  #previousKey = "";
  #previousTime = 0;

  constructor() {
    if (typeof document !== "undefined") document.addEventListener("keydown", (event) => this.#onKeydown(event));
  }

  /** Call in an `$effect` and return the result, so that the shortcuts are removed with the page. */
  use(title: string, shortcuts: Shortcut[]): () => void {
    const group = { title, shortcuts };
    this.groups = this.#groups = [...this.#groups, group];
    return () => {
      this.groups = this.#groups = this.#groups.filter((other) => other !== group);
    };
  }

  #onKeydown(event: KeyboardEvent): void {
    if (event.defaultPrevented || event.metaKey || event.ctrlKey || event.altKey || isTyping(event.target)) return;
    if (document.querySelector("dialog[open]")) return;
    if (activatesTarget(event)) return;
    const now = performance.now();
    const sequence = now - this.#previousTime < SEQUENCE_MS ? `${this.#previousKey} ${event.key}` : "";
    this.#previousKey = event.key;
    this.#previousTime = now;
    // the group that was registered last has priority
    for (const group of [...this.#groups].reverse()) {
      const shortcut = group.shortcuts.find((s) => (sequence && s.keys.includes(sequence)) || s.keys.includes(event.key));
      if (shortcut) {
        event.preventDefault();
        shortcut.run(event);
        return;
      }
    }
  }
}

/** Enter and Space activate the focused button or link; a shortcut must not override that. */
function activatesTarget({ key, target }: KeyboardEvent): boolean {
  return (key === "Enter" || key === " ") && target instanceof Element && target.closest(ACTIVATABLE) !== null;
}

function isTyping(target: EventTarget | null): boolean {
  if (!(target instanceof HTMLElement)) return false;
  if (target instanceof HTMLInputElement) return !["checkbox", "radio", "range", "button"].includes(target.type);
  return target.isContentEditable || target instanceof HTMLTextAreaElement || target instanceof HTMLSelectElement;
}

export const shortcuts = new Shortcuts();
