import { expect, it } from "vitest";
import type { End, RunView } from "../../api/types";
import { describeOutcome } from "./outcome";

const end: End = {
  reason: "script failed", message: "ValueError: no", exit_code: 1, signal: null, rank: 3, node: "node-1",
  traceback: "", last_lines: "", processes_left: 0,
};
const run = (status: RunView["status"], end: End | null, activity = "") => ({ status, end, activity }) as unknown as RunView;

it("names the failure and its process", () => {
  expect(describeOutcome(run("Failed", end))).toEqual({
    tone: "bad",
    headline: "Script failed",
    facts: [["rank", "3"], ["node", "node-1"], ["exit code", "1"]],
  });
});

it("has no details for a completed run, and the activity for an unfinished one", () => {
  expect(describeOutcome(run("Completed", { ...end, reason: "succeeded", rank: 0 }))).toEqual({
    tone: "good", headline: "Completed", facts: [],
  });
  expect(describeOutcome(run("Queued", null, "waiting for 2 CPUs")).headline).toBe("waiting for 2 CPUs");
});
