// Where the reader is. Everything that they chose is in the address, so that it can be sent to somebody, and the
// browser's back button does what it says.

import { fromMlflow, match, type Route } from "./routes";

class Router {
  #url = $state.raw(new URL(typeof location === "undefined" ? "http://here/" : location.href));

  path = $derived(this.#url.pathname);
  query = $derived(this.#url.searchParams);
  route: Route = $derived(match(this.path));

  constructor() {
    if (typeof window === "undefined") return;
    window.addEventListener("popstate", () => this.#look());
    window.addEventListener("hashchange", () => this.#comeFromMlflow());
    this.#comeFromMlflow();
    document.addEventListener("click", (event) => this.#clicked(event));
  }

  /** To another page. */
  go(href: string, how: { replace?: boolean } = {}): void {
    const to = new URL(href, this.#url);
    if (to.href === this.#url.href) return;
    const pageChanged = to.pathname !== this.#url.pathname;
    history[how.replace ? "replaceState" : "pushState"](null, "", to);
    this.#look();
    if (pageChanged) window.scrollTo(0, 0);
  }

  /** Changes of what is shown on this page: null or "" takes a name out. Typing replaces, choosing may push. */
  set(changes: Record<string, string | number | null | undefined>, how: { push?: boolean } = {}): void {
    this.go(this.with(changes), { replace: !how.push });
  }

  /** The address of this page with other choices, for links. */
  with(changes: Record<string, string | number | null | undefined>): string {
    const to = new URL(this.#url);
    for (const [name, value] of Object.entries(changes)) {
      if (value === null || value === undefined || value === "") to.searchParams.delete(name);
      else to.searchParams.set(name, String(value));
    }
    return to.pathname + to.search;
  }

  #comeFromMlflow(): void {
    const address = fromMlflow(this.#url.hash);
    if (address !== null) this.go(address, { replace: true });
  }

  #look(): void {
    this.#url = new URL(location.href);
  }

  #clicked(event: MouseEvent): void {
    if (event.defaultPrevented || event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey)
      return;
    const link = event.target instanceof Element ? event.target.closest("a") : null;
    if (!(link instanceof HTMLAnchorElement) || link.target || link.hasAttribute("download")) return;
    const to = new URL(link.href);
    if (to.origin !== location.origin || to.pathname.startsWith("/api/")) return;
    if (to.hash && to.pathname === location.pathname && to.search === location.search) return;
    event.preventDefault();
    this.go(to.href);
  }
}

export const router = new Router();
