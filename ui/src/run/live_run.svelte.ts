// The current state of one run. The event stream reports changes; only changed parts are requested.

import { follow, type StreamState } from "../api/event_stream";
import { asProblem, part, type Problem } from "../api/http";
import { hasEnded, type RunView, type Series } from "../api/types";
import { getLogs, getRun, getSeries, getTimeline, type Log, type Phase } from "./api";

export class LiveRun {
  run = $state.raw<RunView | null>(null);
  series = $state.raw<Series[]>([]);
  logs = $state.raw<Log[]>([]);
  timeline = $state.raw<Phase[]>([]);
  counts = $state.raw<Record<string, number>>({}); // values per series
  sizes = $state.raw<Record<string, number>>({}); // bytes per log
  fileCount = $state(0);
  fileBytes = $state(0);
  problem = $state.raw<Problem | null>(null);
  state = $state<StreamState>("connecting");
  authProblem = $state.raw<Problem | null>(null); // the server rejects the stream: retrying does not help
  seriesLoaded = $state(false);
  logsLoaded = $state(false);
  now = $state(Date.now() / 1000);
  ended = $derived(this.run !== null && hasEnded(this.run.status));
  // the build log of a cached environment is empty
  visibleLogs = $derived(this.logs.filter((log) => (this.sizes[log.name] ?? log.size) > 0 || log.rank !== null));
  origin = $derived(this.run ? (this.run.started_at ?? this.run.created_at) : 0);

  constructor(readonly id: string) {}

  /** Follows the run until the returned function is called. */
  start(): () => void {
    void this.#load();
    const stop = follow(`/api/runs/${part(this.id)}/live`, {
      on: {
        status: (data) => this.update(data as RunView),
        metrics: (data) => this.#updateCounts(data as Record<string, number>),
        logs: (data) => this.#updateSizes(data as Record<string, number>),
        files: (data) => {
          ({ count: this.fileCount, bytes: this.fileBytes } = data as { count: number; bytes: number });
        },
        end: (data) => {
          const complete = this.ended && this.seriesLoaded; // it had ended before the page was opened
          this.update(data as RunView);
          if (!complete) void this.#loadParts().catch(() => {});
        },
      },
      state: (state, problem) => {
        this.state = state;
        if (state === "live") this.authProblem = null;
        else if (problem) this.authProblem = problem.status >= 400 && problem.status < 500 ? problem : null;
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

  update(run: RunView): void {
    const previousStatus = this.run?.status;
    if (!this.#setRun(run)) return;
    if (this.problem) {
      this.problem = null; // the server is reachable again: load what failed before
      void this.#loadParts().catch((error: unknown) => (this.problem = asProblem(error)));
    } else if (previousStatus !== run.status) void this.#loadTimeline().catch(() => {});
  }

  async #load(): Promise<void> {
    try {
      this.#setRun(await getRun(this.id));
      await this.#loadParts();
    } catch (error) {
      this.problem = asProblem(error);
    }
  }

  async #loadParts(): Promise<void> {
    await Promise.all([this.#loadSeries(), this.#loadLogs(), this.#loadTimeline()]);
  }

  async #loadSeries(): Promise<void> {
    this.series = await getSeries(this.id);
    this.seriesLoaded = true;
  }

  async #loadLogs(): Promise<void> {
    this.logs = await getLogs(this.id);
    this.logsLoaded = true;
  }

  async #loadTimeline(): Promise<void> {
    this.timeline = await getTimeline(this.id);
  }

  /** False for an outdated response, which is ignored. */
  #setRun(run: RunView): boolean {
    if (this.run && this.run.version > run.version) return false;
    this.run = run;
    return true;
  }

  #updateCounts(counts: Record<string, number>): void {
    this.counts = { ...this.counts, ...counts };
    const names = new Set(this.series.map(({ name }) => name));
    if (Object.keys(counts).some((name) => !names.has(name))) void this.#loadSeries().catch(() => {});
  }

  #updateSizes(sizes: Record<string, number>): void {
    this.sizes = { ...this.sizes, ...sizes };
    const names = new Set(this.logs.map(({ name }) => name));
    if (Object.keys(sizes).some((name) => !names.has(name))) void this.#loadLogs().catch(() => {});
  }
}
