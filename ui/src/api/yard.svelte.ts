// The one stream of all runs' changes that the pages share. It is open while some page listens, and for a moment after,
// so that going from page to page opens nothing anew.

import { follow, type LiveState } from "./live";
import type { Problem } from "./http";
import type { Row } from "./shapes";

export interface Listener {
  run?: (row: Row) => void;
  removed?: (runId: string) => void;
  computes?: () => void;
  /** The stream came back after a pause: something may have been missed. */
  back?: () => void;
}

const LINGER_MS = 2000;

class Yard {
  state = $state<LiveState | "closed">("closed");
  problem = $state.raw<Problem | null>(null);
  words = $derived(
    { closed: "", connecting: "Connecting…", live: "Live", lost: "Reconnecting…", resting: "Paused" }[this.state],
  );

  #listeners = new Set<Listener>();
  #stop: (() => void) | null = null;
  #closing: ReturnType<typeof setTimeout> | undefined;
  #wasLive = false;

  /** Call in an `$effect` and return what it returns. */
  listen(listener: Listener): () => void {
    this.#listeners.add(listener);
    clearTimeout(this.#closing);
    if (this.#stop === null) this.#open();
    return () => {
      this.#listeners.delete(listener);
      if (this.#listeners.size === 0) this.#closing = setTimeout(() => this.#close(), LINGER_MS);
    };
  }

  #open(): void {
    this.#wasLive = false;
    this.#stop = follow("/api/live", {
      on: {
        hello: () => {
          if (this.#wasLive) this.#each((l) => l.back?.());
          this.#wasLive = true;
        },
        run: (data) => this.#each((l) => l.run?.(rowOf(data))),
        removed: (data) => this.#each((l) => l.removed?.((data as { run_id: string }).run_id)),
        computes: () => this.#each((l) => l.computes?.()),
      },
      state: (state, problem) => {
        this.state = state;
        this.problem = problem;
      },
    });
  }

  #close(): void {
    this.#stop?.();
    this.#stop = null;
    this.state = "closed";
  }

  #each(tell: (listener: Listener) => void): void {
    for (const listener of this.#listeners) tell(listener);
  }
}

function rowOf(data: unknown): Row {
  const told = data as Row | { row: Row };
  return "row" in told ? told.row : told;
}

export const yard = new Yard();
