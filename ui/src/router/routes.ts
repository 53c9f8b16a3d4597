// The pages and their addresses.

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
  | { page: "nowhere"; path: string };

export function match(path: string): Route {
  const steps = path.split("/").filter(Boolean).map(decoded);
  const [first, second, third] = steps;
  if (steps.length === 0) return { page: "runs" };
  if (steps.length === 2 && second) {
    if (first === "runs") return { page: "run", id: second };
    if (first === "models") return { page: "model", name: second };
    if (first === "services") return { page: "service", name: second };
  }
  if (steps.length === 3 && first === "data" && third) {
    if (second === "stores") return { page: "datastore", name: third };
    if (second === "datasets") return { page: "dataset", name: third };
  }
  if (steps.length === 1) {
    if (first === "runs") return { page: "runs" };
    if (first === "compare") return { page: "compare" };
    if (first === "computes") return { page: "computes" };
    if (first === "environments") return { page: "environments" };
    if (first === "models") return { page: "models" };
    if (first === "services") return { page: "services" };
    if (first === "data") return { page: "data" };
  }
  return { page: "nowhere", path };
}

export function runAddress(id: string): string {
  return `/runs/${encodeURIComponent(id)}`;
}

export function compareAddress(ids: readonly string[]): string {
  return `/compare?runs=${ids.map(encodeURIComponent).join(",")}`;
}

export function runsAddress(query: string): string {
  return query ? `/runs?q=${encodeURIComponent(query)}` : "/runs";
}

/** The newest version where none is given. */
export function modelAddress(name: string, version?: number | string | null): string {
  return `/models/${encodeURIComponent(name)}${version ? `?version=${encodeURIComponent(version)}` : ""}`;
}

export function serviceAddress(name: string): string {
  return `/services/${encodeURIComponent(name)}`;
}

export function datastoreAddress(name: string, path = ""): string {
  return `/data/stores/${encodeURIComponent(name)}${path ? `?path=${encodeURIComponent(path)}` : ""}`;
}

/** A dataset without a name has only its id; it stands in the place of one, and the id says which is meant. */
export function datasetAddress(one: { name?: string | null; version?: number | null; dataset_id?: string | null }): string {
  if (!one.name) return `/data/datasets/-?id=${encodeURIComponent(one.dataset_id ?? "")}`;
  return `/data/datasets/${encodeURIComponent(one.name)}${one.version ? `?version=${one.version}` : ""}`;
}

/** MLflow's client prints links as its own server has them: `#/experiments/{experiment}/runs/{run}`. */
export function fromMlflow(hash: string): string | null {
  const steps = hash.split("/").map(decoded);
  const [start, experiments, experiment, runs, run] = steps;
  if (start !== "#" || experiments !== "experiments" || !experiment) return null;
  if (runs === "runs" && run) return runAddress(run);
  return runsAddress(`experiment:"${experiment === "0" ? "Default" : experiment}"`);
}

function decoded(step: string): string {
  try {
    return decodeURIComponent(step);
  } catch {
    return step; // a stray percent sign is part of a name
  }
}
