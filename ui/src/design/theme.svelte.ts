// Light, dark, or as the system says. `theme.shown` is what is to be seen now: canvases draw again when it changes.

export type Choice = "system" | "light" | "dark";

const KEY = "runyard.theme";

class Theme {
  choice = $state<Choice>(kept());
  #system = $state<"light" | "dark">("light");
  shown = $derived(this.choice === "system" ? this.#system : this.choice);

  constructor() {
    if (typeof matchMedia === "undefined") return;
    const dark = matchMedia("(prefers-color-scheme: dark)");
    this.#system = dark.matches ? "dark" : "light";
    dark.addEventListener("change", () => (this.#system = dark.matches ? "dark" : "light"));
  }

  choose(choice: Choice): void {
    this.choice = choice;
    document.documentElement.style.colorScheme = choice === "system" ? "" : choice;
    try {
      localStorage.setItem(KEY, choice);
    } catch {
      // storage may be forbidden: the choice holds until the page is left
    }
  }
}

function kept(): Choice {
  try {
    const word = localStorage.getItem(KEY);
    return word === "dark" || word === "light" ? word : "system";
  } catch {
    return "system";
  }
}

export const theme = new Theme();

/** A token as a colour that a canvas understands: `colour("--accent")`. Read `theme.shown` first, to hear of changes. */
export function colour(token: string): string {
  const probe = document.createElement("span");
  probe.style.color = `var(${token})`;
  document.body.append(probe);
  const found = getComputedStyle(probe).color;
  probe.remove();
  return found;
}

/** The token of the n-th line of a chart. */
export function seriesToken(index: number): string {
  return `--series-${(index % 10) + 1}`;
}
