// The rows of the runs table: loaded in pages, patched by live changes, and reloaded when rows may have moved. Rows are
// plain objects: thousands of them need no proxies.

import { asProblem, isAbort, type Problem } from "../api/http";
import { getTable } from "../api/runs";
import type { Row, Table } from "../api/types";
import { pagesOf, type Range } from "./virtual_rows";

export const PAGE = 100;
const RELOAD_MS = 700; // minimum interval of reloads caused by live changes

export class RunRows {
  total = $state(0);
  ready = $state(false); // a response to the current query has arrived
  loading = $state(false); // the rows still belong to the previous query
  unmatched = $state(false); // nothing matches the query that is being typed; the rows are those of the previous one
  problem = $state.raw<Problem | null>(null);
  typing = false; // half a word often matches nothing, which must not empty the table
  /** Counts changes of rows: components that show rows read it. */
  tick = $state(0);

  #pages = new Map<number, Row[]>();
  #indices = new Map<string, number>();
  #version = 0;
  #query = "";
  #sort = "";
  #visible: Range = { from: 0, to: PAGE };
  #requests = new Map<number, AbortController>();
  #reloadTimer: ReturnType<typeof setTimeout> | undefined;
  #requestedAt = 0;
  #outdated: "all" | "hidden" | null = null; // the pages that the next response replaces

  /** Changes the query. The old rows stay until the response arrives, so that nothing flickers during typing. */
  setQuery(query: string, sort: string): void {
    if (query === this.#query && sort === this.#sort && this.#requestedAt > 0) return;
    this.#query = query;
    this.#sort = sort;
    this.#visible = { from: 0, to: PAGE };
    this.#outdated = "all";
    this.loading = true;
    this.#loadVisible();
  }

  /** The query is complete: show its result, even if there is none. */
  settle(): void {
    this.typing = false;
    if (!this.unmatched) return;
    this.unmatched = false;
    this.#pages.clear();
    this.#indices.clear();
    this.#outdated = null;
    this.total = 0;
    this.tick += 1;
  }

  /** Sets the visible rows. Requests for pages that were scrolled past are aborted. */
  show(range: Range): void {
    this.#visible = range;
    const pages = pagesOf(range, PAGE);
    for (const [page, request] of this.#requests) if (!pages.includes(page)) this.#abort(page, request);
    if (this.#outdated === "all") return;
    for (const page of pages) if (!this.#pages.has(page) && !this.#requests.has(page)) void this.#fetch(page);
  }

  at(index: number): Row | undefined {
    return this.#pages.get(Math.floor(index / PAGE))?.[index % PAGE];
  }

  indexOf(runId: string): number | undefined {
    return this.#indices.get(runId);
  }

  /** Reloads the visible pages and drops the others. */
  refresh(): void {
    this.#outdated ??= "hidden";
    this.#loadVisible();
  }

  /** Patches a changed run in place; reloads if its position may have changed. */
  changed(row: Row): void {
    const index = this.#indices.get(row.run_id);
    const page = index === undefined ? undefined : this.#pages.get(Math.floor(index / PAGE));
    if (index === undefined || page === undefined) {
      this.#scheduleReload();
      return;
    }
    page[index % PAGE] = row;
    this.tick += 1;
    const byAge = this.#sort === "-created_at" || this.#sort === "created_at";
    if (!byAge || this.#query !== "") this.#scheduleReload();
  }

  removed(): void {
    this.#scheduleReload();
  }

  /** The live stream starts at this version: older rows may lack changes. */
  from(version: number): void {
    if (this.ready && version > this.#version) this.#scheduleReload();
  }

  stop(): void {
    clearTimeout(this.#reloadTimer);
    for (const [page, request] of this.#requests) this.#abort(page, request);
  }

  #scheduleReload(): void {
    if (this.#reloadTimer !== undefined) return;
    const delay = Math.max(0, this.#requestedAt + RELOAD_MS - performance.now());
    this.#reloadTimer = setTimeout(() => this.refresh(), delay);
  }

  #loadVisible(): void {
    clearTimeout(this.#reloadTimer);
    this.#reloadTimer = undefined;
    for (const [page, request] of this.#requests) this.#abort(page, request);
    const pages = pagesOf(this.#visible, PAGE);
    for (const page of pages.length ? pages : [0]) void this.#fetch(page);
  }

  #abort(page: number, request: AbortController): void {
    request.abort();
    this.#requests.delete(page);
  }

  async #fetch(page: number): Promise<void> {
    const request = new AbortController();
    this.#requests.set(page, request);
    this.#requestedAt = performance.now();
    try {
      const query = { query: this.#query, sort: this.#sort, offset: page * PAGE, limit: PAGE };
      const table = await getTable(query, { signal: request.signal });
      if (!request.signal.aborted) this.#store(page, table);
    } catch (error) {
      if (isAbort(error)) return;
      this.problem = asProblem(error);
      this.loading = false;
    } finally {
      if (this.#requests.get(page) === request) this.#requests.delete(page);
    }
  }

  #store(page: number, table: Table): void {
    if (this.typing && table.total === 0 && this.total > 0 && this.#outdated === "all") {
      this.unmatched = true;
      this.problem = null;
      this.loading = false;
      return;
    }
    this.unmatched = false;
    const visible = pagesOf(this.#visible, PAGE);
    for (const loaded of this.#pages.keys()) {
      if (this.#outdated === "all" || (this.#outdated === "hidden" && !visible.includes(loaded))) this.#pages.delete(loaded);
    }
    this.#outdated = null;
    this.#pages.set(page, table.rows);
    this.#version = table.version;
    this.#indices.clear();
    for (const [number, rows] of this.#pages) rows.forEach((row, i) => this.#indices.set(row.run_id, number * PAGE + i));
    this.total = table.total;
    this.problem = null;
    this.ready = true;
    this.loading = false;
    this.tick += 1;
  }
}
