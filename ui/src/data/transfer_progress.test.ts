import { expect, it } from "vitest";
import type { Transfer } from "./api";
import { percent, secondsLeft } from "./transfer_progress";

const transfer = (changes: Partial<Transfer>) =>
  ({ state: "running", bytes: 0, bytes_done: 0, files: 0, files_done: 0, seconds: 0, ...changes }) as Transfer;

it("computes the percentage from bytes or files", () => {
  expect(percent(transfer({}))).toBeNull();
  expect(percent(transfer({ bytes: 200, bytes_done: 50 }))).toBe(25);
  expect(percent(transfer({ files: 4, files_done: 1 }))).toBe(25);
  expect(percent(transfer({ state: "done" }))).toBe(100);
});

it("estimates the remaining time", () => {
  expect(secondsLeft(transfer({ bytes: 200, bytes_done: 50, seconds: 10 }))).toBe(30);
  expect(secondsLeft(transfer({ bytes: 200, bytes_done: 0, seconds: 10 }))).toBeNull();
});
