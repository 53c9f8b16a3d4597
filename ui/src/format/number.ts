// Number formatting with enough digits to distinguish two runs.

/** "0.0312", "12,345", "1.2e-7", "98.13"; whole numbers stay whole */
export function number(value: unknown): string {
  if (value === null || value === undefined) return "";
  if (value === "Infinity") return "∞"; // the API's form of numbers that JSON lacks
  if (value === "-Infinity") return "−∞";
  if (typeof value !== "number") return typeof value === "object" ? JSON.stringify(value) : String(value);
  if (Number.isNaN(value)) return "NaN";
  if (!Number.isFinite(value)) return value > 0 ? "∞" : "−∞";
  if (value === 0) return "0";
  const size = Math.abs(value);
  if (Number.isInteger(value) && size < 1e15) return withMinusSign(value.toLocaleString("en-US"));
  if (size >= 1e9 || size < 1e-4) return withMinusSign(trimZeros(value.toExponential(3)));
  if (size >= 1000) return withMinusSign(value.toLocaleString("en-US", { maximumFractionDigits: 1 }));
  return withMinusSign(trimZeros(value.toPrecision(4)));
}

/** "17", "1.2k", "3.4M": for counts whose exact value does not matter */
export function compact(value: number): string {
  const steps: [number, string][] = [
    [1e9, "G"],
    [1e6, "M"],
    [1e3, "k"],
  ];
  for (const [size, suffix] of steps) {
    if (Math.abs(value) >= size * 0.9995) return `${trimZeros((value / size).toPrecision(3))}${suffix}`;
  }
  return number(value);
}

/** "10,000 runs", "1 run" */
export function count(n: number, singular: string, plural = `${singular}s`): string {
  return `${n.toLocaleString("en-US")} ${n === 1 ? singular : plural}`;
}

/** "512 B", "1.4 kB", "2.1 GB" */
export function bytes(n: number | null | undefined): string {
  if (n === null || n === undefined) return "";
  if (n < 1000) return `${n} B`;
  const units = ["kB", "MB", "GB", "TB", "PB"];
  let size = n;
  let unit = -1;
  while (size >= 999.5 && unit < units.length - 1) {
    size /= 1000;
    unit += 1;
  }
  return `${size < 10 ? size.toFixed(1) : size.toFixed(0)} ${units[unit]}`;
}

function trimZeros(text: string): string {
  if (!text.includes(".")) return text;
  return text.replace(/0+(e|$)/, "$1").replace(/\.(e|$)/, "$1");
}

function withMinusSign(text: string): string {
  return text.startsWith("-") ? `−${text.slice(1)}` : text;
}
