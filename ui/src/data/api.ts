// Requests about datastores, datasets and transfers.

import { getJson, part, queryString, sendJson } from "../api/http";
import type { Schemas } from "../api/types";

export type Datastore = Schemas["DatastoreView"];
export type Listing = Schemas["ListingView"];
export type Transfer = Schemas["TransferView"];
export type Dataset = Schemas["DatasetView"];
export type DatasetUse = Schemas["DatasetUse"];
export type DatasetPage = Schemas["DatasetPage"];
export type DatasetNow = Schemas["DatasetContent"];
export type DatasetFiles = Schemas["DatasetFiles"];

export type DatasetSelector = { id: string } | { name: string; version?: number | null };

export const getDatastores = () => getJson<Datastore[]>("/api/datastores");
export const getDatastore = (name: string) => getJson<Datastore>(`/api/datastores/${part(name)}`);
export const getListing = (name: string, below: string) => getJson<Listing>(`/api/datastores/${part(name)}/files${queryString({ below })}`);
export const getTransfers = () => getJson<Transfer[]>("/api/transfers");
export const cancelTransfer = (id: string) => sendJson<Transfer>("POST", `/api/transfers/${part(id)}/cancel`);
export const getDatasets = () => getJson<Dataset[]>("/api/datasets");
export const getDatasetPage = (selector: DatasetSelector) => getJson<DatasetPage>(`/api/datasets/page${queryString({ ...selector })}`);
export const getDatasetNow = (selector: DatasetSelector) => getJson<DatasetNow>(`/api/datasets/now${queryString({ ...selector })}`);
export const getDatasetFiles = (dataset: Dataset) => sendJson<DatasetFiles>("POST", "/api/datasets/files", { definition: dataset.definition });
export const changeDataset = (id: string, tags: Dataset["tags"]) =>
  sendJson<Dataset>("PATCH", `/api/datasets/${part(id)}`, { description: null, tags });
