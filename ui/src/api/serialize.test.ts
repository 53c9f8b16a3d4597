import { expect, it } from "vitest";
import { serialize } from "./serialize";

/** Work whose calls finish when the test says so. */
function manualWork() {
  const calls: { finish: () => void; fail: (error: Error) => void }[] = [];
  const work = () => new Promise<void>((finish, fail) => calls.push({ finish, fail }));
  return { calls, work };
}

const nextTick = () => new Promise((resolve) => setTimeout(resolve));

it("runs one call at a time, and one more for all calls made during it", async () => {
  const { calls, work } = manualWork();
  const run = serialize(work);
  const all = Promise.all([run(), run(), run()]);
  await nextTick();
  expect(calls.length).toBe(1);
  calls[0]!.finish();
  await nextTick();
  expect(calls.length).toBe(2);
  calls[1]!.finish();
  await all;
  expect(calls.length).toBe(2);
});

it("can run again after success and after failure", async () => {
  const { calls, work } = manualWork();
  const run = serialize(work);
  for (const index of [0, 1]) {
    const finished = run();
    calls[index]!.finish();
    await finished;
  }
  const failed = run();
  calls[2]!.fail(new Error("bad"));
  await expect(failed).rejects.toThrow("bad");
  void run();
  expect(calls.length).toBe(4);
});
