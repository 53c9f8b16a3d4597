// The current URL. All view state is part of it, so that links can be shared and the back button works.

import { hrefFromMlflow, match, type Route } from "./routes";

class Router {
  #url = $state.raw(new URL(typeof location === "undefined" ? "http://localhost/" : location.href));

  path = $derived(this.#url.pathname);
  query = $derived(this.#url.searchParams);
  route: Route = $derived(match(this.path));

  constructor() {
    if (typeof window === "undefined") return;
    window.addEventListener("popstate", () => this.#update());
    window.addEventListener("hashchange", () => this.#redirectFromMlflow());
    this.#redirectFromMlflow();
    document.addEventListener("click", (event) => this.#onClick(event));
  }

  go(href: string, options: { replace?: boolean } = {}): void {
    const to = new URL(href, this.#url);
    if (to.href === this.#url.href) return;
    const pageChanged = to.pathname !== this.#url.pathname;
    history[options.replace ? "replaceState" : "pushState"](null, "", to);
    this.#update();
    if (pageChanged) window.scrollTo(0, 0);
  }

  /** Changes query parameters of this page; null or "" removes one. Adds no history entry unless `push` is set. */
  set(changes: Record<string, string | number | null | undefined>, options: { push?: boolean } = {}): void {
    this.go(this.with(changes), { replace: !options.push });
  }

  /** The URL of this page with changed query parameters, for links. */
  with(changes: Record<string, string | number | null | undefined>): string {
    const to = new URL(this.#url);
    for (const [name, value] of Object.entries(changes)) {
      if (value === null || value === undefined || value === "") to.searchParams.delete(name);
      else to.searchParams.set(name, String(value));
    }
    return to.pathname + to.search;
  }

  #redirectFromMlflow(): void {
    const href = hrefFromMlflow(this.#url.hash);
    if (href !== null) this.go(href, { replace: true });
  }

  #update(): void {
    this.#url = new URL(location.href);
  }

  #onClick(event: MouseEvent): void {
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
