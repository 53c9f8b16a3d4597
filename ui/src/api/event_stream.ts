// A stream of events from the yard that comes back by itself, from where it was.

import { EventParser } from "./sse";
import { asProblem, isAbort, problemOf, type Problem } from "./http";

export type LiveState = "connecting" | "live" | "lost" | "resting";

export interface Following {
  on: Record<string, (data: unknown) => void>;
  /** Told when the stream comes and goes; `problem` says why it went. */
  state?: (state: LiveState, problem: Problem | null) => void;
}

const FIRST_WAIT_MS = 500;
const LONGEST_WAIT_MS = 15_000;
const SILENCE_MS = 45_000; // the yard says something every 15 s: longer silence is a dead connection

/**
 * Follows `path` until the returned function is called, or until an `end` event came.
 *
 * While the page is hidden nothing is open: a browser allows six connections to a host, and six forgotten tabs
 * would hold them all.
 */
export function follow(path: string, following: Following): () => void {
  const state = following.state ?? (() => {});
  let ended = false;
  let lastId: string | null = null;
  let wait = FIRST_WAIT_MS;
  let timer: ReturnType<typeof setTimeout> | undefined;
  let current: AbortController | null = null;

  async function open(): Promise<void> {
    if (ended || current !== null) return;
    if (document.hidden) {
      state("resting", null);
      return;
    }
    const mine = new AbortController();
    current = mine;
    state("connecting", null);
    let why: Problem | null = null;
    try {
      await read(mine);
    } catch (error) {
      why = isAbort(error) ? null : asProblem(error);
    }
    if (current === mine) current = null;
    if (ended) return;
    if (document.hidden) {
      state("resting", null);
      return;
    }
    state("lost", why);
    timer = setTimeout(() => void open(), wait);
    wait = Math.min(wait * 2, LONGEST_WAIT_MS);
  }

  async function read(mine: AbortController): Promise<void> {
    const headers: Record<string, string> = { accept: "text/event-stream" };
    if (lastId !== null) headers["last-event-id"] = lastId;
    const answer = await fetch(path, { headers, signal: mine.signal, credentials: "same-origin", cache: "no-store" });
    if (!answer.ok || answer.body === null) throw await problemOf(answer);
    state("live", null);
    wait = FIRST_WAIT_MS;
    const parser = new EventParser();
    const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
    let watchdog = setTimeout(() => mine.abort(), SILENCE_MS);
    try {
      for (;;) {
        const { value, done } = await reader.read();
        clearTimeout(watchdog);
        if (done) return;
        watchdog = setTimeout(() => mine.abort(), SILENCE_MS);
        for (const event of parser.push(value)) {
          if (event.id !== null) lastId = event.id;
          following.on[event.event]?.(JSON.parse(event.data));
          if (event.event === "end") {
            stop();
            return;
          }
        }
      }
    } finally {
      clearTimeout(watchdog);
    }
  }

  function seen(): void {
    if (document.hidden) {
      clearTimeout(timer);
      current?.abort();
    } else if (current === null) {
      clearTimeout(timer);
      void open();
    }
  }

  function stop(): void {
    ended = true;
    clearTimeout(timer);
    current?.abort();
    document.removeEventListener("visibilitychange", seen);
  }

  document.addEventListener("visibilitychange", seen);
  void open();
  return stop;
}
