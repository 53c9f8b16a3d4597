// Search in one log. Each log has its own instance, so that a late response does not affect another log.

import { asProblem, isAbort, type Problem } from "../../api/http";
import { searchLog, type LogMatch } from "../api";

export const MAX_MATCHES = 1000;

export class LogSearch {
  matches = $state.raw<LogMatch[] | null>(null);
  text = $state(""); // of the matches
  index = $state(0);
  request = $state.raw<AbortController | null>(null);
  problem = $state.raw<Problem | null>(null);
  current = $derived(this.matches?.[this.index] ?? null);

  constructor(
    readonly id: string,
    readonly name: string,
  ) {}

  /** The first match of `text`, or the next one if it was searched already; null without a match. */
  async find(text: string): Promise<LogMatch | null> {
    this.stop();
    if (!text) {
      this.matches = null;
      this.text = "";
      return null;
    }
    if (text === this.text && this.matches?.length) return this.step(1);
    const controller = new AbortController();
    this.request = controller;
    this.problem = null;
    try {
      const matches = await searchLog(this.id, this.name, text, MAX_MATCHES, { signal: controller.signal });
      if (controller.signal.aborted) return null;
      [this.matches, this.text, this.index] = [matches, text, 0];
      return this.current;
    } catch (error) {
      if (!isAbort(error)) this.problem = asProblem(error);
      return null;
    } finally {
      if (this.request === controller) this.request = null;
    }
  }

  step(by: number): LogMatch | null {
    if (this.matches?.length) this.index = (this.index + by + this.matches.length) % this.matches.length;
    return this.current;
  }

  stop(): void {
    this.request?.abort();
  }
}
