import { expect, it } from "vitest";
import { logTitle } from "./log_title";

const log = (name: string, changes: object = {}) => ({ name, size: 1, rank: null, role: "", node: null, ...changes });

it("shortens log names", () => {
  expect(logTitle(log("20_environment_log.txt"))).toBe("Environment");
  expect(logTitle(log("60_mpirun_log.txt"))).toBe("mpirun");
  expect(logTitle(log("70_driver_log.txt", { rank: 0, role: "driver" }))).toBe("Script");
  expect(logTitle(log("70_driver_log_rank_3.txt", { rank: 3, role: "rank", node: "node-1" }))).toBe("Rank 3 · node-1");
  expect(logTitle(log("70_driver_log_worker_1.txt", { rank: 2, role: "worker" }))).toBe("Worker 1");
  expect(logTitle(log("azureml-logs/99_something_odd.txt"))).toBe("something odd");
});
