// Requests about web services.

import { getJson, part, queryString, sendJson } from "../api/http";
import type { Schemas } from "../api/types";

export type Service = Schemas["Service"];
export type ServiceVersion = Schemas["ServiceVersion"];
export type ServicePoint = Schemas["ServicePoint"];
export type ServiceStats = Schemas["ServiceStats"];
export type ServiceRequest = Schemas["ServiceRequest"];
export type InvocationResult = Schemas["InvocationResult"];
export type ServiceKeys = Schemas["ServiceKeys"];

const url = (name: string) => `/api/services/${part(name)}`;

export const getServices = () => getJson<Service[]>("/api/services");
export const getService = (name: string) => getJson<Service>(url(name));
export const getStats = (name: string) => getJson<ServiceStats>(`${url(name)}/stats`);
export const getRequests = (name: string, limit: number) => getJson<ServiceRequest[]>(`${url(name)}/requests${queryString({ limit })}`);
export const getServiceLog = async (name: string, lines: number) =>
  (await getJson<Schemas["ServiceLog"]>(`${url(name)}/logs${queryString({ lines })}`)).text;
export const getKeys = (name: string) => getJson<ServiceKeys>(`${url(name)}/keys`);
export const replaceKey = (name: string, which: keyof ServiceKeys) => sendJson<ServiceKeys>("POST", `${url(name)}/keys`, { which, value: null });
export const setTraffic = (name: string, shares: Record<string, number>) => sendJson<Service>("POST", `${url(name)}/traffic`, shares);
export const invoke = (name: string, body: string) => sendJson<InvocationResult>("POST", `${url(name)}/invoke`, { body });
export const getOpenApi = (name: string) => getJson<Record<string, unknown>>(`${url(name)}/openapi`);
