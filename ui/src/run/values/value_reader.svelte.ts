// Reads all values of one series, by pages, and what is new at its end.

import { asProblem, type Problem } from "../../api/http";
import { getValues, type Logged } from "../api";
import { inTurn } from "../../api/serialize";

const FIRST = 1000; // soon there
const MORE = 10_000;

export class ValueReader {
  values = $state.raw<Logged[]>([]);
  problem = $state.raw<Problem | null>(null);
  readonly read = inTurn(() => this.#toEnd());
  #next = 0;
  #left = false;

  constructor(
    readonly id: string,
    readonly name: string,
  ) {}

  /** Nobody looks any more: pages that are left are not asked for. */
  stop(): void {
    this.#left = true;
  }

  async #toEnd(): Promise<void> {
    try {
      for (let more = true; more && !this.#left; ) {
        const found = await getValues(this.id, this.name, this.#next, this.#next ? MORE : FIRST);
        const came = found.next > this.#next;
        if (came) this.values = [...this.values, ...found.values];
        if (came) this.#next = found.next;
        this.problem = null;
        more = came && found.next < found.count;
      }
    } catch (error) {
      this.problem = asProblem(error);
    }
  }
}
