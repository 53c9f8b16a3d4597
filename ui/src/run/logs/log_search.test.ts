import { beforeEach, expect, it, vi } from "vitest";
import { searchLog, type LogMatch } from "../api";
import { LogSearch } from "./log_search.svelte";

vi.mock("../api", () => ({ searchLog: vi.fn() }));

const request = vi.mocked(searchLog);
const matches: LogMatch[] = [1, 2, 3].map((line) => ({ line, offset: line * 10, text: "loss" }));

beforeEach(() => void request.mockReset());

it("returns the first match, then the next ones", async () => {
  request.mockResolvedValue(matches);
  const search = new LogSearch("run", "log.txt");
  expect(await search.find("loss")).toBe(matches[0]);
  expect(await search.find("loss")).toBe(matches[1]);
  expect(request).toHaveBeenCalledTimes(1);
  expect([search.step(-1), search.step(-1)]).toEqual([matches[0], matches[2]]);
  expect(await search.find("")).toBe(null);
  expect(search.matches).toBe(null);
});

it("ignores a response after it was stopped", async () => {
  let respond = (_: LogMatch[]) => {};
  request.mockReturnValue(new Promise((resolve) => (respond = resolve)));
  const search = new LogSearch("run", "log.txt");
  const pending = search.find("loss");
  search.stop();
  expect(request.mock.calls[0]![4]?.signal?.aborted).toBe(true);
  respond(matches);
  expect(await pending).toBe(null);
  expect([search.matches, search.request, search.problem]).toEqual([null, null, null]);
});

it("ignores the response to an earlier search", async () => {
  const responses: ((matches: LogMatch[]) => void)[] = [];
  request.mockImplementation(() => new Promise((resolve) => responses.push(resolve)));
  const search = new LogSearch("run", "log.txt");
  const pending = [search.find("lo"), search.find("loss")];
  responses[1]!(matches);
  responses[0]!([]);
  expect(await Promise.all(pending)).toEqual([null, matches[0]]);
  expect([search.text, search.matches]).toEqual(["loss", matches]);
});
