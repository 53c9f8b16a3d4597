import { expect, it } from "vitest";
import { EventParser } from "./sse";

it("gives whole events, however the text was cut", () => {
  const text = 'event: run\nid: 7\ndata: {"a":1}\n\n: still here\n\nevent: end\ndata: x\ndata: y\n\n';
  const parser = new EventParser();
  const found = [...text].flatMap((letter) => parser.push(letter));
  expect(found).toEqual([
    { event: "run", data: '{"a":1}', id: "7" },
    { event: "end", data: "x\ny", id: "7" },
  ]);
});

it("reads lines that end as on other systems", () => {
  expect(new EventParser().push("event: hello\r\ndata: 1\r\n\r\n")).toEqual([{ event: "hello", data: "1", id: null }]);
});

it("says nothing of what has no data", () => {
  expect(new EventParser().push(": here\n\nevent: run\n\n")).toEqual([]);
});
