import { expect, it, vi } from "vitest";
import type { Service, ServicePoint } from "./api";
import { historyLine, milliseconds, requestTime, servedModels, shareError, splitError, workerLabel } from "./service_info";

const point = (at: number, rps: number, p50: number) => ({ at, requests_per_second: rps, p50_ms: p50 }) as ServicePoint;
const worker = (state: string) => ({ state });
const service = {
  versions: [
    { state: "Healthy", traffic: 20, models: ["digits:3"], workers: [worker("serving")] },
    { state: "Healthy", traffic: 80, models: ["digits:2", "words:1"], workers: [worker("serving"), worker("starting")] },
    { state: "Retired", traffic: 0, models: ["digits:1"], workers: [worker("absent")] },
  ],
} as unknown as Service;

it("leaves gaps in latencies where there were no requests", () => {
  const history = [point(1, 5, 2), point(2, 0, 0), point(3, 4, 3)];
  const style = { key: "a", label: "a", color: "" };
  expect([...historyLine(history, ({ p50_ms }) => p50_ms, style, true).ys]).toEqual([2, NaN, 3]);
  expect([...historyLine(history, (point) => point.requests_per_second, style).ys]).toEqual([5, 0, 4]);
});

it("formats latencies", () => {
  expect([0.0712, 4, 12.34, 123.4, 1234, undefined].map(milliseconds)).toEqual(["0.071 ms", "4 ms", "12.3 ms", "123 ms", "1.23 s", "–"]);
});

it("lists the served models by share, and counts serving workers", () => {
  expect(servedModels(service).map(({ id }) => id)).toEqual(["digits:2", "words:1", "digits:3"]);
  expect(workerLabel(service)).toBe("2 of 3");
});

it("splits an error into message and hint", () => {
  expect(splitError("it failed\n\nhint: look\nthere")).toEqual({ message: "it failed", hint: "look\nthere" });
  expect(splitError("it failed")).toEqual({ message: "it failed", hint: "" });
});

it("shows request times in the local time zone", () => {
  vi.stubEnv("TZ", "Asia/Tokyo");
  expect(requestTime("2026-11-16T20:03:09")).toBe("2026-11-17 05:03:09");
  expect(requestTime("?")).toBe("?");
  vi.unstubAllEnvs();
});

it("requires whole shares that add up to 100", () => {
  expect(shareError({ 1: 90, 2: 10 })).toBe("");
  expect(shareError({ 1: 90, 2: 20 })).toContain("110");
  expect(shareError({ 1: 99.5, 2: 0.5 })).toContain("whole");
});
