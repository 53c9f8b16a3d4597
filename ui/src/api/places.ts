// Where runs run, and in which Pythons.

import { getJson, sendJson, type Options } from "./http";
import type { Built, Compute, Registered } from "./types";

export function computes(options: Options = {}): Promise<Compute[]> {
  return getJson("/api/computes", options);
}

export function builtEnvironments(options: Options = {}): Promise<Built[]> {
  return getJson("/api/environments", options);
}

export function registeredEnvironments(options: Options = {}): Promise<Registered[]> {
  return getJson("/api/environments/registered", options);
}

/** The removed ones: one that an unfinished run uses stays. */
export function removeEnvironment(key: string): Promise<Built[]> {
  return sendJson("POST", "/api/environments/prune", { keys: [key] });
}
