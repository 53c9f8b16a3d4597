// What a page shows of the yard: the last answer, and the trouble of the last question.

import { againAndAgain } from "./poll";
import { asProblem, type Problem } from "./http";

/** Ask by `load`, or by `again` for as long as somebody looks. An answer stays when a later question fails. */
export class Asked<T> {
  answer = $state.raw<T | null>(null);
  problem = $state.raw<Problem | null>(null);

  constructor(private readonly ask: () => Promise<T>) {}

  readonly load = async (): Promise<void> => {
    try {
      this.answer = await this.ask();
      this.problem = null;
    } catch (error) {
      this.problem = asProblem(error);
    }
  };

  /** Return it from an `$effect`. */
  again(ms: number | (() => number)): () => void {
    return againAndAgain(this.load, ms);
  }
}
