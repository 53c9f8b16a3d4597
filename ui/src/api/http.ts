// One way to ask the yard. Whatever goes wrong becomes a Problem: what happened, and what to do about it.

export class Problem extends Error {
  override readonly name = "Problem";

  constructor(
    message: string,
    readonly hint: string = "",
    readonly status: number = 0,
    readonly code: string = "",
    readonly position: number | null = null,
  ) {
    super(message);
  }
}

export interface Options {
  signal?: AbortSignal | undefined;
}

export async function getJson<T>(path: string, options: Options = {}): Promise<T> {
  return (await json(await ask("GET", path, undefined, options))) as T;
}

export async function sendJson<T>(method: string, path: string, body?: unknown, options: Options = {}): Promise<T> {
  return (await json(await ask(method, path, body, options))) as T;
}

export async function getBytes(path: string, options: Options = {}): Promise<{ bytes: Uint8Array; headers: Headers }> {
  return await bytesOf(await ask("GET", path, undefined, options));
}

export async function postForBytes(path: string, body: unknown, options: Options = {}): Promise<Uint8Array> {
  return (await bytesOf(await ask("POST", path, body, options))).bytes;
}

export async function getText(path: string, options: Options = {}): Promise<string> {
  return await (await ask("GET", path, undefined, options)).text();
}

/** An answer that is good; anything else is thrown as a Problem. */
export async function ask(method: string, path: string, body: unknown, options: Options = {}): Promise<Response> {
  const request: RequestInit = { method, credentials: "same-origin", headers: { accept: "application/json, */*" } };
  if (options.signal) request.signal = options.signal;
  if (body !== undefined) {
    request.body = JSON.stringify(body);
    request.headers = { ...request.headers, "content-type": "application/json" };
  }
  let answer: Response;
  try {
    answer = await fetch(path, request);
  } catch (error) {
    throw isAbort(error) ? error : unreachable();
  }
  if (!answer.ok) throw await problemOf(answer);
  return answer;
}

/** True for requests that we gave up ourselves: nobody needs to read of them. */
export function isAbort(error: unknown): boolean {
  return error instanceof DOMException && error.name === "AbortError";
}

/** The yard answered, and what was asked for is not there: what is still shown of it is no longer true. */
export function isGone(problem: Problem): boolean {
  return problem.status >= 400 && problem.status < 500 && problem.status !== 401 && problem.status !== 403;
}

/** Anything that was thrown, as something to show. */
export function asProblem(error: unknown): Problem {
  if (error instanceof Problem) return error;
  return new Problem(error instanceof Error ? error.message : String(error));
}

/** `/api/runs/${part(id)}`: names of users may hold any character. */
export function part(name: string): string {
  return encodeURIComponent(name);
}

/** A path of several parts, such as a file's name: slashes stay. */
export function parts(name: string): string {
  return name.split("/").map(encodeURIComponent).join("/");
}

/** `?a=1&b=2`, without what is undefined, null or empty. */
export function query(values: Record<string, string | number | boolean | null | undefined>): string {
  const params = new URLSearchParams();
  for (const [name, value] of Object.entries(values)) {
    if (value !== undefined && value !== null && value !== "") params.set(name, String(value));
  }
  const text = params.toString();
  return text ? `?${text}` : "";
}

export async function problemOf(answer: Response): Promise<Problem> {
  if (answer.status === 401 || answer.status === 403) {
    return new Problem("This page is not signed in to the yard.", "Open it again by `runyard studio`.", answer.status);
  }
  let told: Record<string, unknown> = {};
  try {
    const body: unknown = await answer.json();
    if (typeof body === "object" && body !== null) told = body as Record<string, unknown>;
  } catch {
    // an answer of something between us and the yard: only its status is known
  }
  const facts = (typeof told.facts === "object" && told.facts !== null ? told.facts : {}) as Record<string, unknown>;
  const position = told.position ?? facts.position;
  return new Problem(
    typeof told.message === "string" && told.message ? told.message : `The yard answered ${answer.status}.`,
    typeof told.hint === "string" ? told.hint : "",
    answer.status,
    typeof told.code === "string" ? told.code : "",
    typeof position === "number" ? position : null,
  );
}

function unreachable(): Problem {
  return new Problem("The yard does not answer.", "It may have been stopped: `runyard studio` starts it again.");
}

async function json(answer: Response): Promise<unknown> {
  if (answer.status === 204) return null;
  return await answer.json();
}

async function bytesOf(answer: Response): Promise<{ bytes: Uint8Array; headers: Headers }> {
  return { bytes: new Uint8Array(await answer.arrayBuffer()), headers: answer.headers };
}
