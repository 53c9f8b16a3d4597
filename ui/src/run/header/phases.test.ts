import { expect, it } from "vitest";
import { phaseShares } from "./phases";

it("computes the share of each phase", () => {
  const shares = phaseShares(
    [
      { phase: "snapshot", from: 0, to: 1 },
      { phase: "queue", from: 1, to: 1 },
      { phase: "run", from: 1, to: 4 },
    ],
    100,
  );
  expect(shares.map(({ phase, share }) => [phase, share])).toEqual([["snapshot", 0.25], ["run", 0.75]]);
});

it("extends an unfinished phase until now", () => {
  const [phase] = phaseShares([{ phase: "run", from: 10, to: null }], 15);
  expect(phase).toMatchObject({ seconds: 5, open: true, share: 1 });
});

it("ignores negative durations, caused by different clocks", () => {
  expect(phaseShares([{ phase: "run", from: 10, to: 9 }], 15)).toEqual([]);
});
