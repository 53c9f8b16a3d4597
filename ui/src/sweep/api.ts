// Requests about sweeps.

import { getJson, part } from "../api/http";
import type { Schemas } from "../api/types";

export type Child = Schemas["TrialView"];
export type Sweep = Schemas["SweepView"];
export type Importance = Schemas["Importance"];

const url = (id: string) => `/api/sweeps/${part(id)}`;

export const getSweep = (id: string) => getJson<Sweep>(url(id));
export const getImportance = (id: string) => getJson<Importance>(`${url(id)}/importance`);
