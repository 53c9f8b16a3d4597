import { expect, it, vi } from "vitest";
import { Problem } from "./http";
import { follow, type Following } from "./event_stream";
import { yard } from "./yard.svelte";

vi.mock("./event_stream", () => ({ follow: vi.fn(() => () => {}) }));

function opened(): Following {
  return vi.mocked(follow).mock.lastCall![1];
}

it("tells of runs that are gone", () => {
  const removed = vi.fn();
  const leave = yard.listen({ removed });
  opened().on.removed?.({ run_id: "digits_1" });
  expect(removed).toHaveBeenCalledWith("digits_1");
  leave();
});

it("says all the while that it is not signed in, until it is", () => {
  const leave = yard.listen({});
  const state = opened().state!;
  state("lost", new Problem("not signed in", "", 401));
  state("connecting", null);
  expect(yard.refusal?.message).toBe("not signed in");
  state("live", null);
  expect(yard.refusal).toBeNull();
  state("lost", new Problem("away"));
  expect(yard.refusal).toBeNull();
  leave();
});
