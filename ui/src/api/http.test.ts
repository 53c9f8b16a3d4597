import { expect, it } from "vitest";
import { isGone, parts, problemFromResponse, queryString } from "./http";

const response = (status: number, body: unknown) => new Response(JSON.stringify(body), { status });

it("takes message, hint and position from an error response", async () => {
  const body = { code: "UserErrorException", message: "expected a value", hint: "lr>0.1", facts: {}, position: 3 };
  expect(await problemFromResponse(response(400, body))).toMatchObject({ message: "expected a value", hint: "lr>0.1", position: 3 });
});

it("explains how to sign in", async () => {
  expect((await problemFromResponse(response(401, {}))).hint).toContain("runyard studio");
});

it("distinguishes a deleted object from other errors", async () => {
  expect(isGone(await problemFromResponse(response(404, {})))).toBe(true);
  for (const status of [401, 500]) expect(isGone(await problemFromResponse(response(status, {})))).toBe(false);
});

it("describes a response that is not the server's", async () => {
  const problem = await problemFromResponse(new Response("<h1>Bad gateway</h1>", { status: 502 }));
  expect(problem.message).toBe("The server responded with status 502.");
});

it("encodes names in URLs", () => {
  expect(parts("outputs/a b?.txt")).toBe("outputs/a%20b%3F.txt");
  expect(queryString({ a: "x y", b: null, c: 0 })).toBe("?a=x+y&c=0");
});
