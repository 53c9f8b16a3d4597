// Where the time of a run went.

import { duration } from "../../format/time";
import type { Phase } from "../api";

export interface Share {
  phase: string;
  words: string;
  seconds: number;
  share: number; // of the whole, 0 to 1
  open: boolean; // still going on
}

const WORDS: Record<string, string> = {
  snapshot: "Snapshot",
  environment: "Environment",
  data: "Data",
  queue: "Queue",
  launch: "Launch",
  run: "Run",
  finalize: "Finalize",
};

/** "7 ms", "0.34 s", and so on: most phases of a good run are short. */
export function spell(seconds: number): string {
  return seconds < 0.0995 ? `${Math.round(seconds * 1000)} ms` : duration(seconds);
}

/** The phases that took any time, in their order; one that is not over goes on until `now`. */
export function sharesOf(phases: Phase[], now: number): Share[] {
  const lengths = phases.map(({ phase, from, to }) => ({
    phase,
    words: WORDS[phase] ?? phase,
    seconds: Math.max(0, (to ?? now) - from),
    open: to === null,
  }));
  const whole = lengths.reduce((sum, { seconds }) => sum + seconds, 0);
  return lengths
    .filter(({ seconds, open }) => seconds > 0 || open)
    .map((length) => ({ ...length, share: whole > 0 ? length.seconds / whole : 1 }));
}
