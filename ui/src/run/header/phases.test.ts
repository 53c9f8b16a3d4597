import { describe, expect, it } from "vitest";
import { sharesOf } from "./phases";
import { verdictOf } from "./outcome";
import type { End, RunView } from "../../api/types";

describe("the time of a run", () => {
  it("is shared out among its phases", () => {
    const shares = sharesOf(
      [
        { phase: "snapshot", from: 0, to: 1 },
        { phase: "queue", from: 1, to: 1 },
        { phase: "run", from: 1, to: 4 },
      ],
      100,
    );
    expect(shares.map(({ phase, share }) => [phase, share])).toEqual([["snapshot", 0.25], ["run", 0.75]]);
  });

  it("goes on while a phase is not over", () => {
    const [only] = sharesOf([{ phase: "run", from: 10, to: null }], 15);
    expect(only).toMatchObject({ seconds: 5, open: true, share: 1 });
  });

  it("is never less than nothing, whatever two clocks say", () => {
    expect(sharesOf([{ phase: "run", from: 10, to: 9 }], 15)).toEqual([]);
  });
});

describe("a verdict", () => {
  const end: End = {
    reason: "script failed", message: "ValueError: no", exit_code: 1, signal: null, rank: 3, node: "node-1",
    traceback: "", last_lines: "", processes_left: 0,
  };
  const run = (status: RunView["status"], its: End | null, activity = "") =>
    ({ status, end: its, activity }) as unknown as RunView;

  it("says what failed, where", () => {
    expect(verdictOf(run("Failed", end))).toEqual({
      tone: "bad",
      headline: "The script failed",
      facts: [["rank", "3"], ["node", "node-1"], ["exit code", "1"]],
    });
  });

  it("of a good end is short, and before the end it is what goes on", () => {
    expect(verdictOf(run("Completed", { ...end, reason: "succeeded", rank: 0 }))).toEqual({
      tone: "good", headline: "Completed", facts: [],
    });
    expect(verdictOf(run("Queued", null, "waiting for 2 CPUs")).headline).toBe("waiting for 2 CPUs");
  });
});
