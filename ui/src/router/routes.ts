// The pages and their addresses.

export type Route =
  | { page: "runs" }
  | { page: "run"; id: string }
  | { page: "compare" }
  | { page: "computes" }
  | { page: "environments" }
  | { page: "nowhere"; path: string };

export function match(path: string): Route {
  const steps = path.split("/").filter(Boolean).map(decoded);
  const [first, second] = steps;
  if (steps.length === 0) return { page: "runs" };
  if (steps.length === 2 && first === "runs" && second) return { page: "run", id: second };
  if (steps.length === 1) {
    if (first === "runs") return { page: "runs" };
    if (first === "compare") return { page: "compare" };
    if (first === "computes") return { page: "computes" };
    if (first === "environments") return { page: "environments" };
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
