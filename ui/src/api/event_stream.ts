// A stream of server-sent events that reconnects and continues after the last received event.

import { asProblem, isAbort, problemFromResponse, type Problem } from "./http";
import { EventParser } from "./sse";

export type StreamState = "connecting" | "live" | "lost" | "paused";

export interface StreamOptions {
  on: Record<string, (data: unknown) => void>;
  /** Called when the connection opens or closes; `problem` is the reason for "lost". */
  state?: (state: StreamState, problem: Problem | null) => void;
}

const FIRST_DELAY_MS = 500;
const MAX_DELAY_MS = 15_000;
const SILENCE_MS = 45_000; // the server sends at least a comment every 15 s: a longer silence means a dead connection

/**
 * Follows `path` until the returned function is called or an `end` event arrives.
 *
 * The connection is closed while the page is hidden: browsers allow six connections to a host, which six background
 * tabs would occupy.
 */
export function follow(path: string, options: StreamOptions): () => void {
  const setState = options.state ?? (() => {});
  let stopped = false;
  let lastId: string | null = null;
  let delay = FIRST_DELAY_MS;
  let timer: ReturnType<typeof setTimeout> | undefined;
  let connection: AbortController | null = null;

  async function open(): Promise<void> {
    if (stopped || connection !== null) return;
    if (document.hidden) {
      setState("paused", null);
      return;
    }
    const controller = new AbortController();
    connection = controller;
    setState("connecting", null);
    let problem: Problem | null = null;
    try {
      await read(controller);
    } catch (error) {
      problem = isAbort(error) ? null : asProblem(error);
    }
    if (connection === controller) connection = null;
    if (stopped) return;
    if (document.hidden) {
      setState("paused", null);
      return;
    }
    setState("lost", problem);
    timer = setTimeout(() => void open(), delay);
    delay = Math.min(delay * 2, MAX_DELAY_MS);
  }

  async function read(controller: AbortController): Promise<void> {
    const headers: Record<string, string> = { accept: "text/event-stream" };
    if (lastId !== null) headers["last-event-id"] = lastId;
    const response = await fetch(path, { headers, signal: controller.signal, credentials: "same-origin", cache: "no-store" });
    if (!response.ok || response.body === null) throw await problemFromResponse(response);
    setState("live", null);
    delay = FIRST_DELAY_MS;
    const parser = new EventParser();
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    let watchdog = setTimeout(() => controller.abort(), SILENCE_MS);
    try {
      for (;;) {
        const { value, done } = await reader.read();
        clearTimeout(watchdog);
        if (done) return;
        watchdog = setTimeout(() => controller.abort(), SILENCE_MS);
        for (const event of parser.push(value)) {
          if (event.id !== null) lastId = event.id;
          options.on[event.event]?.(JSON.parse(event.data));
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

  function onVisibilityChange(): void {
    if (document.hidden) {
      clearTimeout(timer);
      connection?.abort();
    } else if (connection === null) {
      clearTimeout(timer);
      void open();
    }
  }

  function stop(): void {
    stopped = true;
    clearTimeout(timer);
    connection?.abort();
    document.removeEventListener("visibilitychange", onVisibilityChange);
  }

  document.addEventListener("visibilitychange", onVisibilityChange);
  void open();
  return stop;
}
