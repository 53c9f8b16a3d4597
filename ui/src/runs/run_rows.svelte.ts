// The runs behind the table: pages of rows as they are scrolled to, patched by what the yard says, asked for again when
// that may have moved them. Rows are plain objects: ten thousand of them need no proxies.

import { asProblem, isAbort, type Problem } from "../api/http";
import { table as ask } from "../api/runs";
import type { Row, Table } from "../api/types";
import { pagesOf, type Range } from "./virtual_rows";

export const PAGE = 100;
const AGAIN_MS = 700; // at most this often is a page asked for again because of news

export class RunsTable {
  total = $state(0);
  ready = $state(false); // an answer for the present question is here
  asking = $state(false); // what is shown is still the answer to the question before
  problem = $state.raw<Problem | null>(null);
  /** Counts changes of rows: whoever shows them reads it. */
  tick = $state(0);

  #pages = new Map<number, Row[]>();
  #places = new Map<string, number>();
  #version = 0;
  #query = "";
  #sort = "";
  #shown: Range = { from: 0, to: PAGE };
  #asking = new Map<number, AbortController>();
  #again: ReturnType<typeof setTimeout> | undefined;
  #askedAt = 0;
  #outdated: "all" | "unseen" | null = null; // what the next answer replaces

  /** Another question. What is shown stays until the answer is there, so that nothing flickers while one types. */
  question(query: string, sort: string): void {
    if (query === this.#query && sort === this.#sort && this.#askedAt > 0) return;
    this.#query = query;
    this.#sort = sort;
    this.#shown = { from: 0, to: PAGE };
    this.#outdated = "all";
    this.asking = true;
    this.#askSeen();
  }

  /** These rows are to be seen. Pages that were scrolled past before they came are not waited for. */
  show(range: Range): void {
    this.#shown = range;
    const pages = pagesOf(range, PAGE);
    for (const [page, asking] of this.#asking) if (!pages.includes(page)) this.#abort(page, asking);
    if (this.#outdated === "all") return;
    for (const page of pages) if (!this.#pages.has(page) && !this.#asking.has(page)) void this.#fetch(page);
  }

  at(index: number): Row | undefined {
    return this.#pages.get(Math.floor(index / PAGE))?.[index % PAGE];
  }

  placeOf(runId: string): number | undefined {
    return this.#places.get(runId);
  }

  /** Asks again for what is seen, and forgets the rest. */
  refresh(): void {
    this.#outdated ??= "unseen";
    this.#askSeen();
  }

  /** A run changed. It is patched where it stands at once; whether it belongs elsewhere now, the yard knows. */
  changed(row: Row): void {
    const place = this.#places.get(row.run_id);
    const page = place === undefined ? undefined : this.#pages.get(Math.floor(place / PAGE));
    if (place === undefined || page === undefined) {
      this.#soon();
      return;
    }
    page[place % PAGE] = row;
    this.tick += 1;
    const byAge = this.#sort === "-created_at" || this.#sort === "created_at";
    if (!byAge || this.#query !== "") this.#soon();
  }

  /** A run is gone, and those below it move up. */
  removed(): void {
    this.#soon();
  }

  /** The stream of news begins at this version: rows that are older may have missed some. */
  from(version: number): void {
    if (this.ready && version > this.#version) this.#soon();
  }

  stop(): void {
    clearTimeout(this.#again);
    for (const [page, asking] of this.#asking) this.#abort(page, asking);
  }

  #soon(): void {
    if (this.#again !== undefined) return;
    const wait = Math.max(0, this.#askedAt + AGAIN_MS - performance.now());
    this.#again = setTimeout(() => this.refresh(), wait);
  }

  #askSeen(): void {
    clearTimeout(this.#again);
    this.#again = undefined;
    for (const [page, asking] of this.#asking) this.#abort(page, asking);
    const pages = pagesOf(this.#shown, PAGE);
    for (const page of pages.length ? pages : [0]) void this.#fetch(page);
  }

  #abort(page: number, asking: AbortController): void {
    asking.abort();
    this.#asking.delete(page);
  }

  async #fetch(page: number): Promise<void> {
    const mine = new AbortController();
    this.#asking.set(page, mine);
    this.#askedAt = performance.now();
    try {
      const asked = { query: this.#query, sort: this.#sort, offset: page * PAGE, limit: PAGE };
      const got = await ask(asked, { signal: mine.signal });
      if (!mine.signal.aborted) this.#take(page, got);
    } catch (error) {
      if (isAbort(error)) return;
      this.problem = asProblem(error);
      this.asking = false;
    } finally {
      if (this.#asking.get(page) === mine) this.#asking.delete(page);
    }
  }

  #take(page: number, got: Table): void {
    const seen = pagesOf(this.#shown, PAGE);
    for (const there of this.#pages.keys()) {
      if (this.#outdated === "all" || (this.#outdated === "unseen" && !seen.includes(there))) this.#pages.delete(there);
    }
    this.#outdated = null;
    this.#pages.set(page, got.rows);
    this.#version = got.version;
    this.#places.clear();
    for (const [at, there] of this.#pages) there.forEach((row, i) => this.#places.set(row.run_id, at * PAGE + i));
    this.total = got.total;
    this.problem = null;
    this.ready = true;
    this.asking = false;
    this.tick += 1;
  }
}
