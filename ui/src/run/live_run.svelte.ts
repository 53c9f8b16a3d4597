// One run as it is now: the yard tells what changed, and only that is asked for.

import { asProblem, part, type Problem } from "../api/http";
import { follow, type LiveState } from "../api/event_stream";
import { hasEnded, type RunView, type Series } from "../api/types";
import { getLogs, getRun, getSeries, getTimeline, type Log, type Phase } from "./api";

export class LiveRun {
  run = $state.raw<RunView | null>(null);
  series = $state.raw<Series[]>([]);
  logs = $state.raw<Log[]>([]);
  timeline = $state.raw<Phase[]>([]);
  counts = $state.raw<Record<string, number>>({});
  sizes = $state.raw<Record<string, number>>({});
  files = $state(0); // how many there are
  fileBytes = $state(0); // of all of them
  trouble = $state.raw<Problem | null>(null);
  state = $state<LiveState>("connecting");
  refused = $state.raw<Problem | null>(null); // the yard answers, but does not tell us: trying again is no help
  seriesKnown = $state(false);
  logsKnown = $state(false);
  now = $state(Date.now() / 1000);
  ended = $derived(this.run !== null && hasEnded(this.run.status));
  // an environment that was there already has nothing to tell
  toldLogs = $derived(this.logs.filter((log) => (this.sizes[log.name] ?? log.size) > 0 || log.rank !== null));
  origin = $derived(this.run ? (this.run.started_at ?? this.run.created_at) : 0);

  constructor(readonly id: string) {}

  /** Until the returned function is called. */
  start(): () => void {
    void this.#load();
    const stop = follow(`/api/runs/${part(this.id)}/live`, {
      on: {
        status: (data) => this.#changed(data as RunView),
        metrics: (data) => this.#counted(data as Record<string, number>),
        logs: (data) => this.#grown(data as Record<string, number>),
        files: (data) => {
          ({ count: this.files, bytes: this.fileBytes } = data as { count: number; bytes: number });
        },
        end: (data) => {
          const known = this.ended && this.seriesKnown; // it had ended before we came: nothing is new
          this.#changed(data as RunView);
          if (!known) void this.#reload().catch(() => {});
        },
      },
      state: (state, problem) => {
        this.state = state;
        if (state === "live") this.refused = null;
        else if (problem) this.refused = problem.status >= 400 && problem.status < 500 ? problem : null;
      },
    });
    const timer = setInterval(() => {
      if (!this.ended) this.now = Date.now() / 1000;
    }, 1000);
    return () => {
      stop();
      clearInterval(timer);
    };
  }

  take(run: RunView): void {
    this.#changed(run);
  }

  async #load(): Promise<void> {
    try {
      this.#take(await getRun(this.id));
      await this.#reload();
    } catch (error) {
      this.trouble = asProblem(error);
    }
  }

  async #reload(): Promise<void> {
    await Promise.all([this.#readSeries(), this.#readLogs(), this.#readTimeline()]);
  }

  async #readSeries(): Promise<void> {
    this.series = await getSeries(this.id);
    this.seriesKnown = true;
  }

  async #readLogs(): Promise<void> {
    this.logs = await getLogs(this.id);
    this.logsKnown = true;
  }

  async #readTimeline(): Promise<void> {
    this.timeline = await getTimeline(this.id);
  }

  #changed(run: RunView): void {
    const before = this.run;
    if (!this.#take(run)) return;
    if (this.trouble) {
      this.trouble = null; // the yard tells again: also what it did not when it was asked first
      void this.#reload().catch((error: unknown) => (this.trouble = asProblem(error)));
    } else if (before?.status !== run.status) void this.#readTimeline().catch(() => {});
  }

  #take(run: RunView): boolean {
    if (this.run && this.run.version > run.version) return false; // an answer that was overtaken
    this.run = run;
    return true;
  }

  #counted(counts: Record<string, number>): void {
    this.counts = { ...this.counts, ...counts };
    const known = new Set(this.series.map((one) => one.name));
    if (Object.keys(counts).some((name) => !known.has(name))) void this.#readSeries().catch(() => {});
  }

  #grown(sizes: Record<string, number>): void {
    this.sizes = { ...this.sizes, ...sizes };
    const known = new Set(this.logs.map((log) => log.name));
    if (Object.keys(sizes).some((name) => !known.has(name))) void this.#readLogs().catch(() => {});
  }
}
