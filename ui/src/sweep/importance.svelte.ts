// Loads the parameter importance of a sweep when its results change.

import { asProblem, type Problem } from "../api/http";
import { getImportance, type Importance, type Sweep } from "./api";
import { resultsKey } from "./ranking";

export class ImportanceLoader {
  data = $state.raw<Importance | null>(null);
  problem = $state.raw<Problem | null>(null);
  #resultsKey: string | null = null; // the results that the data belongs to

  /** Reloads if results changed. A failed request is retried with the next update. */
  async update(sweep: Sweep): Promise<void> {
    const results = resultsKey(sweep);
    if (results === this.#resultsKey) return;
    try {
      this.data = await getImportance(sweep.sweep_id);
      this.#resultsKey = results;
      this.problem = null;
    } catch (error) {
      this.problem = asProblem(error);
    }
  }
}
