// The color theme: light, dark or that of the system. Canvases redraw when `theme.effective` changes.

export type ThemeChoice = "system" | "light" | "dark";

const KEY = "runyard.theme";

class Theme {
  choice = $state<ThemeChoice>(storedChoice());
  #system = $state<"light" | "dark">("light");
  effective = $derived(this.choice === "system" ? this.#system : this.choice);

  constructor() {
    if (typeof matchMedia === "undefined") return;
    const dark = matchMedia("(prefers-color-scheme: dark)");
    this.#system = dark.matches ? "dark" : "light";
    dark.addEventListener("change", () => (this.#system = dark.matches ? "dark" : "light"));
  }

  choose(choice: ThemeChoice): void {
    this.choice = choice;
    document.documentElement.style.colorScheme = choice === "system" ? "" : choice;
    try {
      localStorage.setItem(KEY, choice);
    } catch {
      // storage may be disabled: the choice then lasts until the page is closed
    }
  }
}

function storedChoice(): ThemeChoice {
  try {
    const stored = localStorage.getItem(KEY);
    return stored === "dark" || stored === "light" ? stored : "system";
  } catch {
    return "system";
  }
}

export const theme = new Theme();

/** The current value of a CSS color variable, for canvases: `cssColor("--accent")`. Read `theme.effective` to react to changes. */
export function cssColor(token: string): string {
  const probe = document.createElement("span");
  probe.style.color = `var(${token})`;
  document.body.append(probe);
  const value = getComputedStyle(probe).color;
  probe.remove();
  return value;
}

/** The color variable of the n-th line of a chart. */
export function seriesToken(index: number): string {
  return `--series-${(index % 10) + 1}`;
}
