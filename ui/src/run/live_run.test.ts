import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { Problem } from "../api/http";
import { follow, type Following } from "../api/event_stream";
import type { RunView } from "../api/types";
import { getLogs, getRun, getSeries, getTimeline } from "./api";
import { LiveRun } from "./live_run.svelte";

vi.mock("../api/event_stream", () => ({ follow: vi.fn() }));
vi.mock("./api", () => ({ getLogs: vi.fn(), getRun: vi.fn(), getSeries: vi.fn(), getTimeline: vi.fn() }));

const away = () => new Problem("The yard does not answer.");
const run = (version: number, status: string) => ({ run_id: "run", version, status }) as RunView;
const soon = () => new Promise((resolve) => setTimeout(resolve));

let stop = () => {};
let stream: Following;

function opened(): LiveRun {
  const live = new LiveRun("run");
  stop = live.start();
  return live;
}

beforeEach(() => {
  vi.mocked(follow).mockImplementation((_path, following) => {
    stream = following;
    return () => {};
  });
  vi.mocked(getRun).mockReset().mockResolvedValue(run(1, "Running"));
  vi.mocked(getSeries).mockReset().mockResolvedValue([]);
  vi.mocked(getLogs).mockReset().mockResolvedValue([]);
  vi.mocked(getTimeline).mockReset().mockResolvedValue([]);
});
afterEach(() => stop());

it("stays ended when an older answer comes late", async () => {
  let answer = (_: RunView) => {};
  vi.mocked(getRun).mockReturnValue(new Promise((resolve) => (answer = resolve)));
  const live = opened();
  stream.on.status!(run(5, "Completed"));
  answer(run(3, "Running"));
  await soon();
  expect(live.run?.status).toBe("Completed");
  expect(live.seriesKnown && live.logsKnown).toBe(true);
});

it("has no trouble any more when the stream brings the run, and asks for what it did not get", async () => {
  vi.mocked(getRun).mockRejectedValue(away());
  const live = opened();
  await soon();
  expect(live.trouble?.message).toBe("The yard does not answer.");
  expect(live.seriesKnown).toBe(false);
  stream.on.status!(run(1, "Running"));
  expect([live.trouble, live.run?.status]).toEqual([null, "Running"]);
  await soon();
  expect([live.trouble, live.seriesKnown, live.logsKnown]).toEqual([null, true, true]);
});

it("keeps its trouble while the rest still cannot be read", async () => {
  vi.mocked(getSeries).mockRejectedValue(away());
  const live = opened();
  await soon();
  stream.on.status!(run(2, "Running"));
  await soon();
  expect(live.trouble?.message).toBe("The yard does not answer.");
});

it("says that it is not signed in until it is, and nothing of a yard that is merely away", async () => {
  const live = opened();
  await soon();
  stream.state!("lost", away());
  expect(live.refused).toBe(null);
  stream.state!("lost", new Problem("This page is not signed in to the yard.", "Open it again.", 401));
  stream.state!("connecting", null);
  expect(live.refused?.hint).toBe("Open it again.");
  stream.state!("live", null);
  expect(live.refused).toBe(null);
});

it("knows that files grew though there are no more of them", () => {
  const live = opened();
  stream.on.files!({ count: 2, bytes: 10 });
  stream.on.files!({ count: 2, bytes: 30 });
  expect([live.files, live.fileBytes]).toEqual([2, 30]);
});
