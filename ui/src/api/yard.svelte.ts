// The stream of run changes that all pages share. It stays open for a moment after the last page stopped listening, so
// that navigation between pages does not reconnect.

import { follow, type StreamState } from "./event_stream";
import type { Problem } from "./http";
import type { Compute, Row } from "./types";

export interface Listener {
  run?: (row: Row) => void;
  removed?: (runId: string) => void;
  computes?: (computes: Compute[]) => void;
  /** The stream starts, or starts again, at this version of the run table: older data may lack changes. */
  from?: (version: number) => void;
}

const LINGER_MS = 2000;

class Yard {
  state = $state<StreamState | "closed">("closed");
  problem = $state.raw<Problem | null>(null);
  /** Set if the server rejects the page: unlike a lost connection, retrying does not help. */
  authProblem = $derived(this.problem?.isUnauthorized ? this.problem : null);
  stateLabel = $derived(
    this.authProblem
      ? "Not signed in"
      : { closed: "", connecting: "Connecting…", live: "Live", lost: "Reconnecting…", paused: "Paused" }[this.state],
  );

  #listeners = new Set<Listener>();
  #stop: (() => void) | null = null;
  #closing: ReturnType<typeof setTimeout> | undefined;

  /** Call in an `$effect` and return the result. */
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
        hello: (data) => this.#notify((l) => l.from?.((data as { version: number }).version)),
        reset: () => this.#notify((l) => l.from?.(Number.POSITIVE_INFINITY)),
        run: (data) => this.#notify((l) => l.run?.(data as Row)),
        removed: (data) => this.#notify((l) => l.removed?.((data as { run_id: string }).run_id)),
        computes: (data) => this.#notify((l) => l.computes?.(data as Compute[])),
      },
      state: (state, problem) => {
        this.state = state;
        if (state !== "connecting") this.problem = problem; // keep the error until the retry has an outcome
      },
    });
  }

  #close(): void {
    this.#stop?.();
    this.#stop = null;
    this.state = "closed";
    this.problem = null;
  }

  #notify(call: (listener: Listener) => void): void {
    for (const listener of this.#listeners) call(listener);
  }
}

export const yard = new Yard();
