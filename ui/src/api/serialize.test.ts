import { expect, it } from "vitest";
import { inTurn } from "./serialize";

/** Work of which each turn ends when it is told to. */
function slow() {
  const turns: { end: () => void; fail: (error: Error) => void }[] = [];
  const work = () => new Promise<void>((end, fail) => turns.push({ end, fail }));
  return { turns, work };
}

const soon = () => new Promise((resolve) => setTimeout(resolve));

it("does one at a time, and once more for all who asked meanwhile", async () => {
  const { turns, work } = slow();
  const go = inTurn(work);
  const done = Promise.all([go(), go(), go()]);
  await soon();
  expect(turns.length).toBe(1);
  turns[0]!.end();
  await soon();
  expect(turns.length).toBe(2);
  turns[1]!.end();
  await done;
  expect(turns.length).toBe(2);
});

it("begins anew after it was done, and after it failed", async () => {
  const { turns, work } = slow();
  const go = inTurn(work);
  for (const at of [0, 1]) {
    const done = go();
    turns[at]!.end();
    await done;
  }
  const failed = go();
  turns[2]!.fail(new Error("bad"));
  await expect(failed).rejects.toThrow("bad");
  void go();
  expect(turns.length).toBe(4);
});
