import { beforeEach, expect, it, vi } from "vitest";
import { searchLog, type Hit } from "../api";
import { LogSearch } from "./log_search.svelte";

vi.mock("../api", () => ({ searchLog: vi.fn() }));

const asked = vi.mocked(searchLog);
const hits: Hit[] = [1, 2, 3].map((line) => ({ line, offset: line * 10, text: "loss" }));

beforeEach(() => void asked.mockReset());

it("goes to the first place, then from one to the next", async () => {
  asked.mockResolvedValue(hits);
  const search = new LogSearch("run", "log.txt");
  expect(await search.find("loss")).toBe(hits[0]);
  expect(await search.find("loss")).toBe(hits[1]);
  expect(asked).toHaveBeenCalledTimes(1);
  expect([search.step(-1), search.step(-1)]).toEqual([hits[0], hits[2]]);
  expect(await search.find("")).toBe(null);
  expect(search.found).toBe(null);
});

it("that was left marks nothing and goes nowhere, whenever its answer comes", async () => {
  let answer = (_: Hit[]) => {};
  asked.mockReturnValue(new Promise((resolve) => (answer = resolve)));
  const search = new LogSearch("run", "log.txt");
  const going = search.find("loss");
  search.stop();
  expect(asked.mock.calls[0]![4]?.signal?.aborted).toBe(true);
  answer(hits);
  expect(await going).toBe(null);
  expect([search.found, search.asking, search.problem]).toEqual([null, null, null]);
});

it("for other words is not overtaken by the one before", async () => {
  const answers: ((found: Hit[]) => void)[] = [];
  asked.mockImplementation(() => new Promise((resolve) => answers.push(resolve)));
  const search = new LogSearch("run", "log.txt");
  const going = [search.find("lo"), search.find("loss")];
  answers[1]!(hits);
  answers[0]!([]);
  expect(await Promise.all(going)).toEqual([null, hits[0]]);
  expect([search.text, search.found]).toEqual(["loss", hits]);
});
