// The pages and their URLs.

export type Route =
  | { page: "runs" }
  | { page: "run"; id: string }
  | { page: "compare" }
  | { page: "computes" }
  | { page: "environments" }
  | { page: "models" }
  | { page: "model"; name: string }
  | { page: "services" }
  | { page: "service"; name: string }
  | { page: "data" }
  | { page: "datastore"; name: string }
  | { page: "dataset"; name: string }
  | { page: "notFound"; path: string };

export function match(path: string): Route {
  const segments = path.split("/").filter(Boolean).map(decode);
  const [first, second, third] = segments;
  if (segments.length === 0) return { page: "runs" };
  if (segments.length === 2 && second) {
    if (first === "runs") return { page: "run", id: second };
    if (first === "models") return { page: "model", name: second };
    if (first === "services") return { page: "service", name: second };
  }
  if (segments.length === 3 && first === "data" && third) {
    if (second === "stores") return { page: "datastore", name: third };
    if (second === "datasets") return { page: "dataset", name: third };
  }
  if (segments.length === 1) {
    if (first === "runs") return { page: "runs" };
    if (first === "compare") return { page: "compare" };
    if (first === "computes") return { page: "computes" };
    if (first === "environments") return { page: "environments" };
    if (first === "models") return { page: "models" };
    if (first === "services") return { page: "services" };
    if (first === "data") return { page: "data" };
  }
  return { page: "notFound", path };
}

export function runHref(id: string): string {
  return `/runs/${encodeURIComponent(id)}`;
}

export function compareHref(ids: readonly string[]): string {
  return `/compare?runs=${ids.map(encodeURIComponent).join(",")}`;
}

export function runsHref(query: string): string {
  return query ? `/runs?q=${encodeURIComponent(query)}` : "/runs";
}

/** The newest version if `version` is not set. */
export function modelHref(name: string, version?: number | string | null): string {
  return `/models/${encodeURIComponent(name)}${version ? `?version=${encodeURIComponent(version)}` : ""}`;
}

export function serviceHref(name: string): string {
  return `/services/${encodeURIComponent(name)}`;
}

export function datastoreHref(name: string, path = ""): string {
  return `/data/stores/${encodeURIComponent(name)}${path ? `?path=${encodeURIComponent(path)}` : ""}`;
}

/** A dataset without a name is addressed by its id, with "-" in place of the name. */
export function datasetHref(dataset: { name?: string | null; version?: number | null; dataset_id?: string | null }): string {
  if (!dataset.name) return `/data/datasets/-?id=${encodeURIComponent(dataset.dataset_id ?? "")}`;
  return `/data/datasets/${encodeURIComponent(dataset.name)}${dataset.version ? `?version=${dataset.version}` : ""}`;
}

/** Translates the links that MLflow's client prints, and those of its own page: `#/experiments/{experiment}/runs/{run}`. */
export function hrefFromMlflow(hash: string): string | null {
  const [start, page, name, part, id] = (hash.split("?")[0] ?? "").split("/").map(decode);
  if (start !== "#") return null;
  if (page === "models") return name ? modelHref(name, part === "versions" ? id : null) : "/models";
  if (page !== "experiments" || !name) return null;
  if (part === "runs" && id) return runHref(id);
  return runsHref(`experiment:"${name === "0" ? "Default" : name}"`);
}

function decode(segment: string): string {
  try {
    return decodeURIComponent(segment);
  } catch {
    return segment; // a stray percent sign is part of the name
  }
}
