// HTTP requests to the server. Every failure becomes a Problem with a message and a hint.

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

  get isUnauthorized(): boolean {
    return this.status === 401 || this.status === 403;
  }
}

export interface Options {
  signal?: AbortSignal | undefined;
}

export async function getJson<T>(path: string, options: Options = {}): Promise<T> {
  return (await json(await request("GET", path, undefined, options))) as T;
}

export async function sendJson<T>(method: string, path: string, body?: unknown, options: Options = {}): Promise<T> {
  return (await json(await request(method, path, body, options))) as T;
}

export async function getBytes(path: string, options: Options = {}): Promise<{ bytes: Uint8Array; headers: Headers }> {
  return await readBytes(await request("GET", path, undefined, options));
}

export async function postForBytes(path: string, body: unknown, options: Options = {}): Promise<Uint8Array> {
  return (await readBytes(await request("POST", path, body, options))).bytes;
}

export async function getText(path: string, options: Options = {}): Promise<string> {
  return await (await request("GET", path, undefined, options)).text();
}

/** A successful response; any other is thrown as a Problem. */
export async function request(method: string, path: string, body: unknown, options: Options = {}): Promise<Response> {
  const init: RequestInit = { method, credentials: "same-origin", headers: { accept: "application/json, */*" } };
  if (options.signal) init.signal = options.signal;
  if (body !== undefined) {
    init.body = JSON.stringify(body);
    init.headers = { ...init.headers, "content-type": "application/json" };
  }
  let response: Response;
  try {
    response = await fetch(path, init);
  } catch (error) {
    throw isAbort(error) ? error : unreachable();
  }
  if (!response.ok) throw await problemFromResponse(response);
  return response;
}

/** True for requests that the page aborted itself: they are not shown as errors. */
export function isAbort(error: unknown): boolean {
  return error instanceof DOMException && error.name === "AbortError";
}

/** True if the object no longer exists, so that what the page still shows of it is out of date. */
export function isGone(problem: Problem): boolean {
  return problem.status >= 400 && problem.status < 500 && !problem.isUnauthorized;
}

export function asProblem(error: unknown): Problem {
  if (error instanceof Problem) return error;
  return new Problem(error instanceof Error ? error.message : String(error));
}

/** One segment of a URL path: `/api/runs/${part(id)}`. Names may contain any character. */
export function part(name: string): string {
  return encodeURIComponent(name);
}

/** Several segments of a URL path, such as a file name: slashes are kept. */
export function parts(name: string): string {
  return name.split("/").map(encodeURIComponent).join("/");
}

/** `?a=1&b=2`, without values that are undefined, null or empty. */
export function queryString(values: Record<string, string | number | boolean | null | undefined>): string {
  const params = new URLSearchParams();
  for (const [name, value] of Object.entries(values)) {
    if (value !== undefined && value !== null && value !== "") params.set(name, String(value));
  }
  const text = params.toString();
  return text ? `?${text}` : "";
}

export async function problemFromResponse(response: Response): Promise<Problem> {
  if (response.status === 401 || response.status === 403) {
    return new Problem("You are not signed in.", "Open the studio with `runyard studio`.", response.status);
  }
  let body: Record<string, unknown> = {};
  try {
    const value: unknown = await response.json();
    if (typeof value === "object" && value !== null) body = value as Record<string, unknown>;
  } catch {
    // the response of a proxy: only its status is usable
  }
  const facts = (typeof body.facts === "object" && body.facts !== null ? body.facts : {}) as Record<string, unknown>;
  const position = body.position ?? facts.position;
  return new Problem(
    typeof body.message === "string" && body.message ? body.message : `The server responded with status ${response.status}.`,
    typeof body.hint === "string" ? body.hint : "",
    response.status,
    typeof body.code === "string" ? body.code : "",
    typeof position === "number" ? position : null,
  );
}

function unreachable(): Problem {
  return new Problem("The yard is not responding.", "It may have stopped. Run `runyard studio` to start it again.");
}

async function json(response: Response): Promise<unknown> {
  if (response.status === 204) return null;
  return await response.json();
}

async function readBytes(response: Response): Promise<{ bytes: Uint8Array; headers: Headers }> {
  return { bytes: new Uint8Array(await response.arrayBuffer()), headers: response.headers };
}
