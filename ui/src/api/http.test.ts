import { expect, it } from "vitest";
import { isGone, parts, problemOf, query } from "./http";

const answer = (status: number, body: unknown) => new Response(JSON.stringify(body), { status });

it("tells what the yard told, and where", async () => {
  const body = { code: "UserErrorException", message: "expected a value", hint: "lr>0.1", facts: {}, position: 3 };
  expect(await problemOf(answer(400, body))).toMatchObject({ message: "expected a value", hint: "lr>0.1", position: 3 });
});

it("says how to sign in", async () => {
  expect((await problemOf(answer(401, {}))).hint).toContain("runyard studio");
});

it("tells what is gone from a yard that does not answer", async () => {
  expect(isGone(await problemOf(answer(404, {})))).toBe(true);
  for (const status of [401, 500]) expect(isGone(await problemOf(answer(status, {})))).toBe(false);
});

it("has words for an answer that is not the yard's", async () => {
  expect((await problemOf(new Response("<h1>Bad gateway</h1>", { status: 502 }))).message).toBe("The yard answered 502.");
});

it("writes addresses that any name fits into", () => {
  expect(parts("outputs/a b?.txt")).toBe("outputs/a%20b%3F.txt");
  expect(query({ a: "x y", b: null, c: 0 })).toBe("?a=x+y&c=0");
});
