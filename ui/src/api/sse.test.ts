import { expect, it } from "vitest";
import { EventParser } from "./sse";

it("returns complete events wherever the text is split", () => {
  const text = 'event: run\nid: 7\ndata: {"a":1}\n\n: still here\n\nevent: end\ndata: x\ndata: y\n\n';
  const parser = new EventParser();
  const events = [...text].flatMap((character) => parser.push(character));
  expect(events).toEqual([
    { event: "run", data: '{"a":1}', id: "7" },
    { event: "end", data: "x\ny", id: "7" },
  ]);
});

it("accepts CRLF line endings", () => {
  expect(new EventParser().push("event: hello\r\ndata: 1\r\n\r\n")).toEqual([{ event: "hello", data: "1", id: null }]);
});

it("ignores comments and events without data", () => {
  expect(new EventParser().push(": here\n\nevent: run\n\n")).toEqual([]);
});
