import { asProblem, type Problem } from "./http";
import { poll } from "./poll";

/** The last response to a request, and the error of the last attempt. Data stays when a later request fails. */
export class Query<T> {
  data = $state.raw<T | null>(null);
  problem = $state.raw<Problem | null>(null);

  constructor(private readonly fetchData: () => Promise<T>) {}

  readonly load = async (): Promise<void> => {
    try {
      this.data = await this.fetchData();
      this.problem = null;
    } catch (error) {
      this.problem = asProblem(error);
    }
  };

  /** Return the result from an `$effect`. */
  poll(ms: number | (() => number)): () => void {
    return poll(this.load, ms);
  }
}
