// Colours of terminals: SGR sequences become spans with a look; every other sequence is dropped.

export interface Look {
  colour: string | null; // "1" … "15" of the palette, or "#rrggbb"
  ground: string | null;
  bold: boolean;
  faint: boolean;
  italic: boolean;
  underlined: boolean;
  struck: boolean;
  inverse: boolean;
}

export interface Span {
  text: string;
  look: Look;
}

export const PLAIN: Look = Object.freeze({
  colour: null,
  ground: null,
  bold: false,
  faint: false,
  italic: false,
  underlined: false,
  struck: false,
  inverse: false,
});

// CSI sequences, OSC sequences (titles, links) up to their terminator, and the short two-character ones
// eslint-disable-next-line no-control-regex
const SEQUENCE = /\x1b(?:\[([0-?]*)[ -/]*([@-~])|\][^\x07\x1b]*(?:\x07|\x1b\\|$)|[@-Z\\-_=>]|[ -/][0-~]|$|\[[0-?]*$)/g;
// eslint-disable-next-line no-control-regex
const UNSEEN = /[\x00-\x08\x0b\x0c\x0e-\x1a\x1c-\x1f\x7f]/g;

/** One line of a log as spans, from the look that the line before left behind. */
export function spansOf(line: string, look: Look = PLAIN): { spans: Span[]; look: Look } {
  const text = overwritten(line);
  if (!text.includes("\x1b")) return { spans: text ? [{ text: seen(text), look }] : [], look };
  const spans: Span[] = [];
  let at = 0;
  for (const match of text.matchAll(SEQUENCE)) {
    if (match.index > at) spans.push({ text: seen(text.slice(at, match.index)), look });
    at = match.index + match[0].length;
    if (match[2] === "m") look = styled(look, match[1] ?? "");
  }
  if (at < text.length) spans.push({ text: seen(text.slice(at)), look });
  return { spans: spans.filter((span) => span.text), look };
}

/** What remains of a line without its colours, as a search sees it. */
export function plainText(line: string): string {
  return seen(overwritten(line).replace(SEQUENCE, ""));
}

/** Progress bars go back to the beginning of their line and write over it: what was written last is to be seen. */
function overwritten(line: string): string {
  const text = line.endsWith("\r") ? line.slice(0, -1) : line;
  const back = text.lastIndexOf("\r");
  return back < 0 ? text : text.slice(back + 1);
}

function seen(text: string): string {
  return text.replace(UNSEEN, "");
}

function styled(look: Look, codes: string): Look {
  const next: Look = { ...look };
  const numbers = codes.replaceAll(":", ";").split(";").map((code) => Number(code || "0"));
  for (let i = 0; i < numbers.length; i++) {
    const code = numbers[i]!;
    if (code === 38 || code === 48) {
      const [colour, used] = extended(numbers, i + 1);
      if (code === 38) next.colour = colour;
      else next.ground = colour;
      i += used;
    } else apply(next, code);
  }
  return same(next, PLAIN) ? PLAIN : next;
}

function apply(look: Look, code: number): void {
  if (code === 0) Object.assign(look, PLAIN);
  else if (code === 1) look.bold = true;
  else if (code === 2) look.faint = true;
  else if (code === 3) look.italic = true;
  else if (code === 4) look.underlined = true;
  else if (code === 7) look.inverse = true;
  else if (code === 9) look.struck = true;
  else if (code === 22) look.bold = look.faint = false;
  else if (code === 23) look.italic = false;
  else if (code === 24) look.underlined = false;
  else if (code === 27) look.inverse = false;
  else if (code === 29) look.struck = false;
  else if (code >= 30 && code <= 37) look.colour = String(code - 30);
  else if (code === 39) look.colour = null;
  else if (code >= 40 && code <= 47) look.ground = String(code - 40);
  else if (code === 49) look.ground = null;
  else if (code >= 90 && code <= 97) look.colour = String(code - 82);
  else if (code >= 100 && code <= 107) look.ground = String(code - 92);
}

/** `5;n` of the 256 colours or `2;r;g;b`, and how many numbers that took. */
function extended(numbers: number[], at: number): [string | null, number] {
  if (numbers[at] === 5) return [indexed(numbers[at + 1]), 2];
  if (numbers[at] === 2) return [hex(numbers.slice(at + 1, at + 4)), 4];
  return [null, 0];
}

function indexed(index: number | undefined): string | null {
  if (index === undefined || !(index >= 0 && index <= 255)) return null;
  if (index < 16) return String(index);
  if (index >= 232) return hex(Array<number>(3).fill(8 + 10 * (index - 232)));
  const cube = index - 16;
  const level = (n: number) => (n ? 55 + 40 * n : 0);
  return hex([level(Math.floor(cube / 36)), level(Math.floor(cube / 6) % 6), level(cube % 6)]);
}

function hex(parts: number[]): string | null {
  if (parts.length < 3 || parts.some((part) => !(part >= 0 && part <= 255))) return null;
  return `#${parts.map((part) => Math.floor(part).toString(16).padStart(2, "0")).join("")}`;
}

function same(a: Look, b: Look): boolean {
  return (Object.keys(PLAIN) as (keyof Look)[]).every((key) => a[key] === b[key]);
}
