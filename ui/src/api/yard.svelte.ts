// The one stream of all runs' changes that the pages share. It is open while some page listens, and for a moment after,
// so that going from page to page opens nothing anew.

import { follow, type LiveState } from "./event_stream";
import type { Problem } from "./http";
import type { Compute, Row } from "./types";

export interface Listener {
  run?: (row: Row) => void;
  removed?: (runId: string) => void;
  computes?: (computes: Compute[]) => void;
  /** The stream begins, or begins again, at this version of the table of runs: what is older may have missed something. */
  from?: (version: number) => void;
}

const LINGER_MS = 2000;

class Yard {
  state = $state<LiveState | "closed">("closed");
  problem = $state.raw<Problem | null>(null);
  /** Why the yard does not let us in: no waiting will help, as it does where it only is away. */
  refusal = $derived(this.problem?.status === 401 || this.problem?.status === 403 ? this.problem : null);
  words = $derived(
    this.refusal
      ? "Not signed in"
      : { closed: "", connecting: "Connecting…", live: "Live", lost: "Reconnecting…", resting: "Paused" }[this.state],
  );

  #listeners = new Set<Listener>();
  #stop: (() => void) | null = null;
  #closing: ReturnType<typeof setTimeout> | undefined;

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
    this.#stop = follow("/api/live", {
      on: {
        hello: (data) => this.#each((l) => l.from?.((data as { version: number }).version)),
        reset: () => this.#each((l) => l.from?.(Number.POSITIVE_INFINITY)),
        run: (data) => this.#each((l) => l.run?.(data as Row)),
        removed: (data) => this.#each((l) => l.removed?.((data as { run_id: string }).run_id)),
        computes: (data) => this.#each((l) => l.computes?.(data as Compute[])),
      },
      state: (state, problem) => {
        this.state = state;
        if (state !== "connecting") this.problem = problem; // the next try is no answer yet
      },
    });
  }

  #close(): void {
    this.#stop?.();
    this.#stop = null;
    this.state = "closed";
    this.problem = null;
  }

  #each(tell: (listener: Listener) => void): void {
    for (const listener of this.#listeners) tell(listener);
  }
}

export const yard = new Yard();
