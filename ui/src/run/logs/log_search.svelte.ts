// Looks for words in one log. Another log has a search of its own: an answer that comes late marks nothing there.

import { asProblem, isAbort, type Problem } from "../../api/http";
import { searchLog, type Hit } from "../api";

export const MOST_HITS = 1000;

export class LogSearch {
  found = $state.raw<Hit[] | null>(null);
  text = $state(""); // what was found
  at = $state(0);
  asking = $state.raw<AbortController | null>(null);
  problem = $state.raw<Problem | null>(null);
  hit = $derived(this.found?.[this.at] ?? null);

  constructor(
    readonly id: string,
    readonly name: string,
  ) {}

  /** The first place of `text`, or the next one when it was looked for already; null when there is no place to go to. */
  async find(text: string): Promise<Hit | null> {
    this.stop();
    if (!text) {
      this.found = null;
      this.text = "";
      return null;
    }
    if (text === this.text && this.found?.length) return this.step(1);
    const mine = new AbortController();
    this.asking = mine;
    this.problem = null;
    try {
      const hits = await searchLog(this.id, this.name, text, MOST_HITS, { signal: mine.signal });
      if (mine.signal.aborted) return null;
      [this.found, this.text, this.at] = [hits, text, 0];
      return this.hit;
    } catch (error) {
      if (!isAbort(error)) this.problem = asProblem(error);
      return null;
    } finally {
      if (this.asking === mine) this.asking = null;
    }
  }

  step(by: number): Hit | null {
    if (this.found?.length) this.at = (this.at + by + this.found.length) % this.found.length;
    return this.hit;
  }

  stop(): void {
    this.asking?.abort();
  }
}
