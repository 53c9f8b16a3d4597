// Which parameters mattered, as far as the results are known.

import { asProblem, type Problem } from "../api/http";
import { getImportance, type Importance, type Sweep } from "./api";
import { resultsOf } from "./ranking";

export class Importances {
  answer = $state.raw<Importance | null>(null);
  problem = $state.raw<Problem | null>(null);
  #of: string | null = null; // the results that the answer is of

  /** Asks when results are new. A question that failed is asked again the next time. */
  async follow(sweep: Sweep): Promise<void> {
    const results = resultsOf(sweep);
    if (results === this.#of) return;
    try {
      this.answer = await getImportance(sweep.sweep_id);
      this.#of = results;
      this.problem = null;
    } catch (error) {
      this.problem = asProblem(error);
    }
  }
}
