// Loads all values of one series in pages, and new ones at its end.

import { asProblem, type Problem } from "../../api/http";
import { getValues, type LoggedValue } from "../api";
import { serialize } from "../../api/serialize";

const FIRST_PAGE = 1000; // small, to show something soon
const PAGE = 10_000;

export class ValueReader {
  values = $state.raw<LoggedValue[]>([]);
  problem = $state.raw<Problem | null>(null);
  readonly load = serialize(() => this.#loadToEnd());
  #next = 0;
  #stopped = false;

  constructor(
    readonly id: string,
    readonly name: string,
  ) {}

  /** Stops loading further pages. */
  stop(): void {
    this.#stopped = true;
  }

  async #loadToEnd(): Promise<void> {
    try {
      for (let more = true; more && !this.#stopped; ) {
        const page = await getValues(this.id, this.name, this.#next, this.#next ? PAGE : FIRST_PAGE);
        const hasNew = page.next > this.#next;
        if (hasNew) this.values = [...this.values, ...page.values];
        if (hasNew) this.#next = page.next;
        this.problem = null;
        more = hasNew && page.next < page.count;
      }
    } catch (error) {
      this.problem = asProblem(error);
    }
  }
}
