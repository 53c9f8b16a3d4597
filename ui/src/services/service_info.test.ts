import { expect, it, vi } from "vitest";
import type { Point, Service } from "./api";
import { curlLine, errorParts, historyLine, milliseconds, oneLine, readable, requestTime, sampleBody, servedModels, sharesWrong, workerWords } from "./service_info";

const point = (at: number, rps: number, p50: number) => ({ at, requests_per_second: rps, p50_ms: p50 }) as Point;
const worker = (state: string) => ({ state });
const service = (more: object = {}) =>
  ({
    scoring_uri: "http://127.0.0.1:9100/score",
    configuration: { auth_enabled: false },
    versions: [
      { state: "Healthy", traffic: 20, models: ["digits:3"], workers: [worker("serving")] },
      { state: "Healthy", traffic: 80, models: ["digits:2", "words:1"], workers: [worker("serving"), worker("starting")] },
      { state: "Retired", traffic: 0, models: ["digits:1"], workers: [worker("absent")] },
    ],
    ...more,
  }) as unknown as Service;

it("leaves a gap where nobody asked", () => {
  const history = [point(1, 5, 2), point(2, 0, 0), point(3, 4, 3)];
  expect([...historyLine(history, (one) => one.p50_ms, { key: "a", label: "a", colour: "" }, true).ys]).toEqual([2, NaN, 3]);
  expect([...historyLine(history, (one) => one.requests_per_second, { key: "a", label: "a", colour: "" }).ys]).toEqual([5, 0, 4]);
});

it("says how long something took", () => {
  expect([0.0712, 4, 12.34, 123.4, 1234, undefined].map(milliseconds)).toEqual(["0.071 ms", "4 ms", "12.3 ms", "123 ms", "1.23 s", "–"]);
});

it("names the models that answer, by their share", () => {
  expect(servedModels(service()).map((one) => one.id)).toEqual(["digits:2", "words:1", "digits:3"]);
  expect(workerWords(service())).toBe("2 of 3");
});

it("tells what is wrong from what to do", () => {
  expect(errorParts("it failed\n\nhint: look\nthere")).toEqual({ message: "it failed", hint: "look\nthere" });
  expect(errorParts("it failed")).toEqual({ message: "it failed", hint: "" });
});

it("begins with the example of the service itself", () => {
  expect(sampleBody({ components: { schemas: { ServiceInput: { example: { x: 1 } } } } })).toBe('{"x":1}');
  expect(sampleBody(null)).toContain('"data"');
});

it("opens up an answer that is JSON in a text", () => {
  expect(readable('"[1, 2]"')).toBe("[\n  1,\n  2\n]");
  expect(readable('"plain"')).toBe("plain");
  expect(readable("not JSON")).toBe("not JSON");
});

it("shows an answer as it came where a number would become another", () => {
  for (const text of ["[NaN, 1.0]", '{"a": -Infinity}', "[12345678901234567890]"]) {
    expect(readable(text)).toBe(text);
    expect(readable(JSON.stringify(text))).toBe(text);
    expect(oneLine(text)).toBe(text);
  }
  expect(readable("[0.7310585786300049]")).toBe("[\n  0.7310585786300049\n]");
  expect(readable('["12345678901234567890"]')).toBe('[\n  "12345678901234567890"\n]');
});

it("tells when a request came by the reader's clock", () => {
  vi.stubEnv("TZ", "Asia/Tokyo");
  expect(requestTime("2026-11-16T20:03:09")).toBe("2026-11-17 05:03:09");
  expect(requestTime("?")).toBe("?");
  vi.unstubAllEnvs();
});

it("sends shares that make a hundred", () => {
  expect(sharesWrong({ 1: 90, 2: 10 })).toBe("");
  expect(sharesWrong({ 1: 90, 2: 20 })).toContain("110");
  expect(sharesWrong({ 1: 99.5, 2: 0.5 })).toContain("whole");
});

it("writes the request for a terminal, with the key only where one is needed", () => {
  expect(curlLine(service(), "it's")).toContain(`-d 'it'\\''s'`);
  expect(curlLine(service(), "{}")).not.toContain("KEY");
  expect(curlLine(service({ configuration: { auth_enabled: true } }), "{}")).toContain("Bearer $KEY");
});
