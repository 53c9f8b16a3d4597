// Request and response bodies of a service, and the equivalent curl command.

import type { Service } from "./api";

const MAX_LINE = 72; // characters: longer bodies are easier to edit when indented
const LONG_INTEGER = /(?<![\d.])\d{16,}(?![\d.eE])/;
const STRING = /"(?:[^"\\]|\\.)*"/g;

/** A common form of bodies, shown as a placeholder: the service may expect another one. */
export const PLACEHOLDER = '{"data": [[1, 2, 3]]}';

/** The example from the service's OpenAPI document; null if its script declares none. */
export function sampleBody(openapi: Record<string, unknown> | null): string | null {
  const schemas = (openapi?.components as { schemas?: Record<string, { example?: unknown }> } | undefined)?.schemas;
  const body = schemas?.ServiceInput?.example;
  if (body === undefined) return null; // an invented body would be an error of the script
  const line = JSON.stringify(body);
  return line.length <= MAX_LINE ? line : JSON.stringify(body, null, 2);
}

/** Indented JSON. A JSON string that contains JSON is unpacked, because many scripts return one. */
export function prettyJson(text: string): string {
  const outer = parseExact(text);
  const inner = typeof outer === "string" ? outer : text;
  const value = parseExact(inner);
  return value === undefined ? inner : JSON.stringify(value, null, 2);
}

/** JSON on one line; other text unchanged. */
export function compactJson(text: string): string {
  const value = parseExact(text);
  return value === undefined ? text : JSON.stringify(value);
}

/** The request as a shell command. The key is a variable, so that it does not end up in the shell history. */
export function curlCommand(service: Service, body: string): string {
  const key = service.configuration.auth_enabled ? ` \\\n  -H "Authorization: Bearer $KEY"` : "";
  const data = body.trim() === "" ? "@request.json" : `'${body.replaceAll("'", `'\\''`)}'`;
  return `curl ${service.scoring_uri} \\\n  -H "Content-Type: application/json"${key} \\\n  -d ${data}`;
}

/** The parsed value, or undefined if parsing would fail or lose digits of long integers. */
function parseExact(text: string): unknown {
  if (LONG_INTEGER.test(text.replace(STRING, '""'))) return undefined;
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}
