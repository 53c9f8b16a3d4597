// The lineage graph of a run, a model or a dataset.

import { getJson, queryString } from "../api/http";
import type { Schemas } from "../api/types";

export type LineageNode = Schemas["LineageNode"];
export type LineageEdge = Schemas["LineageEdge"];
export type Lineage = Schemas["LineageView"];
export type NodeKind = LineageNode["kind"];
export type LineageRoot = { run?: string; model?: string; dataset?: string };

export const getLineage = (root: LineageRoot) => getJson<Lineage>(`/api/lineage${queryString(root)}`);
