import { getJson, sendJson } from "../api/http";
import type { Schemas } from "../api/types";

export type BuiltEnvironment = Schemas["EnvironmentInfo"];
export type RegisteredEnvironment = Schemas["RegisteredEnvironment"];

export const getBuiltEnvironments = () => getJson<BuiltEnvironment[]>("/api/environments");
export const getRegisteredEnvironments = () => getJson<RegisteredEnvironment[]>("/api/environments/registered");

/** Returns the removed environments; one that an unfinished run uses is not removed. */
export const removeEnvironment = (key: string) => sendJson<BuiltEnvironment[]>("POST", "/api/environments/prune", { keys: [key] });
