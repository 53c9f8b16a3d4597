import { getJson } from "../api/http";
import type { Compute } from "../api/types";

export const getComputes = () => getJson<Compute[]>("/api/computes");
