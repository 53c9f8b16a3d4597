import { expect, it, vi } from "vitest";
import { follow, type StreamOptions } from "./event_stream";
import { Problem } from "./http";
import { yard } from "./yard.svelte";

vi.mock("./event_stream", () => ({ follow: vi.fn(() => () => {}) }));

function stream(): StreamOptions {
  return vi.mocked(follow).mock.lastCall![1];
}

it("notifies of removed runs", () => {
  const removed = vi.fn();
  const leave = yard.listen({ removed });
  stream().on.removed?.({ run_id: "digits_1" });
  expect(removed).toHaveBeenCalledWith("digits_1");
  leave();
});

it("reports a missing sign-in until the stream is live, and no lost connection as one", () => {
  const leave = yard.listen({});
  const state = stream().state!;
  state("lost", new Problem("not signed in", "", 401));
  state("connecting", null);
  expect(yard.authProblem?.message).toBe("not signed in");
  state("live", null);
  expect(yard.authProblem).toBeNull();
  state("lost", new Problem("away"));
  expect(yard.authProblem).toBeNull();
  leave();
});
