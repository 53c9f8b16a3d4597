import { expect, it } from "vitest";
import type { Service } from "./api";
import { compactJson, curlCommand, prettyJson, sampleBody } from "./request_body";

const service = (auth_enabled: boolean) =>
  ({ scoring_uri: "http://127.0.0.1:9100/score", configuration: { auth_enabled } }) as Service;

it("starts with the example of the service", () => {
  expect(sampleBody({ components: { schemas: { ServiceInput: { example: { x: 1 } } } } })).toBe('{"x":1}');
  expect(sampleBody({ components: { schemas: { ServiceInput: { description: "not declared" } } } })).toBeNull();
  expect(sampleBody(null)).toBeNull();
});

it("unpacks JSON inside a JSON string", () => {
  expect(prettyJson('"[1, 2]"')).toBe("[\n  1,\n  2\n]");
  expect(prettyJson('"plain"')).toBe("plain");
  expect(prettyJson("not JSON")).toBe("not JSON");
});

it("keeps text whose numbers would change", () => {
  for (const text of ["[NaN, 1.0]", '{"a": -Infinity}', "[12345678901234567890]"]) {
    expect(prettyJson(text)).toBe(text);
    expect(prettyJson(JSON.stringify(text))).toBe(text);
    expect(compactJson(text)).toBe(text);
  }
  expect(prettyJson("[0.7310585786300049]")).toBe("[\n  0.7310585786300049\n]");
  expect(prettyJson('["12345678901234567890"]')).toBe('[\n  "12345678901234567890"\n]');
});

it("quotes the body of the curl command and adds the key if required", () => {
  expect(curlCommand(service(false), "it's")).toContain(`-d 'it'\\''s'`);
  expect(curlCommand(service(false), "")).toContain("-d @request.json");
  expect(curlCommand(service(false), "{}")).not.toContain("KEY");
  expect(curlCommand(service(true), "{}")).toContain("Bearer $KEY");
});
