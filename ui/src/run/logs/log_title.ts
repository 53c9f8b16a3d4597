// Short titles of logs.

import type { Log } from "../api";

const ROLES: Record<string, string> = {
  rank: "Rank",
  worker: "Worker",
  ps: "Server",
  server: "Server",
  chief: "Chief",
  evaluator: "Evaluator",
  driver: "Script",
};

export function logTitle(log: Log): string {
  const file = log.name.slice(log.name.lastIndexOf("/") + 1);
  if (file.startsWith("20_")) return "Environment";
  if (file.startsWith("60_")) return "mpirun";
  if (log.rank === null && !log.role) return file.replace(/^\d\d_/, "").replace(/\.txt$/, "").replaceAll("_", " ");
  const numbered = /_(\d+)\.txt$/.test(file);
  const role = ROLES[log.role ?? (numbered ? "rank" : "driver")] ?? log.role ?? "Rank";
  const suffix = log.node && numbered ? ` · ${log.node}` : "";
  if (role === "Script" || !numbered) return role === "Rank" ? "Script" : role;
  return `${role} ${/_(\d+)\.txt$/.exec(file)?.[1] ?? log.rank}${suffix}`;
}
