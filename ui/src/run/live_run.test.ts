import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { Problem } from "../api/http";
import { follow, type StreamOptions } from "../api/event_stream";
import type { RunView } from "../api/types";
import { getLogs, getRun, getSeries, getTimeline } from "./api";
import { LiveRun } from "./live_run.svelte";

vi.mock("../api/event_stream", () => ({ follow: vi.fn() }));
vi.mock("./api", () => ({ getLogs: vi.fn(), getRun: vi.fn(), getSeries: vi.fn(), getTimeline: vi.fn() }));

const unreachable = () => new Problem("The yard is not responding.");
const run = (version: number, status: string) => ({ run_id: "run", version, status }) as RunView;
const nextTick = () => new Promise((resolve) => setTimeout(resolve));

let stop = () => {};
let stream: StreamOptions;

function open(): LiveRun {
  const live = new LiveRun("run");
  stop = live.start();
  return live;
}

beforeEach(() => {
  vi.mocked(follow).mockImplementation((_path, options) => {
    stream = options;
    return () => {};
  });
  vi.mocked(getRun).mockReset().mockResolvedValue(run(1, "Running"));
  vi.mocked(getSeries).mockReset().mockResolvedValue([]);
  vi.mocked(getLogs).mockReset().mockResolvedValue([]);
  vi.mocked(getTimeline).mockReset().mockResolvedValue([]);
});
afterEach(() => stop());

it("ignores an older response that arrives late", async () => {
  let respond = (_: RunView) => {};
  vi.mocked(getRun).mockReturnValue(new Promise((resolve) => (respond = resolve)));
  const live = open();
  stream.on.status!(run(5, "Completed"));
  respond(run(3, "Running"));
  await nextTick();
  expect(live.run?.status).toBe("Completed");
  expect(live.seriesLoaded && live.logsLoaded).toBe(true);
});

it("clears the error when the stream delivers the run, and loads the missing parts", async () => {
  vi.mocked(getRun).mockRejectedValue(unreachable());
  const live = open();
  await nextTick();
  expect(live.problem?.message).toBe("The yard is not responding.");
  expect(live.seriesLoaded).toBe(false);
  stream.on.status!(run(1, "Running"));
  expect([live.problem, live.run?.status]).toEqual([null, "Running"]);
  await nextTick();
  expect([live.problem, live.seriesLoaded, live.logsLoaded]).toEqual([null, true, true]);
});

it("keeps the error while parts cannot be loaded", async () => {
  vi.mocked(getSeries).mockRejectedValue(unreachable());
  const live = open();
  await nextTick();
  stream.on.status!(run(2, "Running"));
  await nextTick();
  expect(live.problem?.message).toBe("The yard is not responding.");
});

it("reports a missing sign-in until the stream is live, and no lost connection as one", async () => {
  const live = open();
  await nextTick();
  stream.state!("lost", unreachable());
  expect(live.authProblem).toBe(null);
  stream.state!("lost", new Problem("You are not signed in.", "Open the studio.", 401));
  stream.state!("connecting", null);
  expect(live.authProblem?.hint).toBe("Open the studio.");
  stream.state!("live", null);
  expect(live.authProblem).toBe(null);
});

it("tracks the size of files if their number is unchanged", () => {
  const live = open();
  stream.on.files!({ count: 2, bytes: 10 });
  stream.on.files!({ count: 2, bytes: 30 });
  expect([live.fileCount, live.fileBytes]).toEqual([2, 30]);
});
