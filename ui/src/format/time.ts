// Formatting of times and durations. The API's times are seconds since 1970.

const MINUTE = 60;
const HOUR = 3600;
const DAY = 86_400;

/** "0.34 s", "12.1 s", "3 min 05 s", "2 h 07 min", "4 d 3 h" */
export function duration(seconds: number | null | undefined): string {
  if (seconds === null || seconds === undefined || !Number.isFinite(seconds)) return "";
  const s = Math.max(0, seconds);
  if (s < 10) return `${s.toFixed(s < 1 ? 2 : 1)} s`;
  if (s < MINUTE - 0.05) return `${s.toFixed(1)} s`;
  if (s < HOUR - 0.5) {
    const rounded = Math.round(s);
    return `${Math.floor(rounded / MINUTE)} min ${pad(rounded % MINUTE)} s`;
  }
  if (s < DAY - 30) {
    const minutes = Math.round(s / MINUTE);
    return `${Math.floor(minutes / 60)} h ${pad(minutes % 60)} min`;
  }
  const hours = Math.round(s / HOUR);
  return `${Math.floor(hours / 24)} d ${hours % 24} h`;
}

/** "just now", "40 s ago", "3 min ago", "5 h ago", "yesterday", "12 d ago", then the date */
export function ago(at: number | null | undefined, now: number): string {
  if (at === null || at === undefined) return "";
  const s = now - at;
  if (s < 5) return "just now";
  if (s < MINUTE) return `${Math.floor(s)} s ago`;
  if (s < HOUR) return `${Math.floor(s / MINUTE)} min ago`;
  if (s < DAY) return `${Math.floor(s / HOUR)} h ago`;
  if (s < 2 * DAY) return "yesterday";
  if (s < 30 * DAY) return `${Math.floor(s / DAY)} d ago`;
  return date(at);
}

/** "2026-11-16" in the local time zone */
export function date(at: number): string {
  const d = new Date(at * 1000);
  return `${d.getFullYear()}-${pad(d.getMonth() + 1)}-${pad(d.getDate())}`;
}

/** "14:03:09" */
export function clock(at: number): string {
  const d = new Date(at * 1000);
  return `${pad(d.getHours())}:${pad(d.getMinutes())}:${pad(d.getSeconds())}`;
}

/** "2026-11-16 14:03:09", for tooltips and details */
export function dateTime(at: number | null | undefined): string {
  return at === null || at === undefined ? "" : `${date(at)} ${clock(at)}`;
}

function pad(n: number): string {
  return String(n).padStart(2, "0");
}
