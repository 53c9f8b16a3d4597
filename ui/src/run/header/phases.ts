// The time spent in each phase of a run.

import { duration } from "../../format/time";
import type { Phase } from "../api";

export interface Share {
  phase: string;
  label: string;
  seconds: number;
  share: number; // of the total, 0 to 1
  open: boolean; // not finished
}

const LABELS: Record<string, string> = {
  snapshot: "Snapshot",
  environment: "Environment",
  data: "Data",
  queue: "Queue",
  launch: "Launch",
  run: "Run",
  finalize: "Finalize",
};

/** "7 ms", "0.34 s", …: most phases are short. */
export function formatSeconds(seconds: number): string {
  return seconds < 0.0995 ? `${Math.round(seconds * 1000)} ms` : duration(seconds);
}

/** The phases with a duration; an unfinished one lasts until `now`. */
export function phaseShares(phases: Phase[], now: number): Share[] {
  const lengths = phases.map(({ phase, from, to }) => ({
    phase,
    label: LABELS[phase] ?? phase,
    seconds: Math.max(0, (to ?? now) - from),
    open: to === null,
  }));
  const total = lengths.reduce((sum, { seconds }) => sum + seconds, 0);
  return lengths
    .filter(({ seconds, open }) => seconds > 0 || open)
    .map((length) => ({ ...length, share: total > 0 ? length.seconds / total : 1 }));
}
