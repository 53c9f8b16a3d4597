// Terminal colors: SGR sequences become styled spans; all other escape sequences are dropped.

import Anser from "anser";

export interface TextStyle {
  color: string | null; // "0" … "15" of the palette, or "rgb(…)"
  background: string | null;
  decorations: string[];
}

export interface Span {
  text: string;
  style: TextStyle;
}

/** The style at the end of a line, which the next line continues with. */
export type SgrState = Pick<ParserFields, "fg" | "bg" | "fg_truecolor" | "bg_truecolor" | "decorations">;

interface ParserFields {
  fg: string | null;
  bg: string | null;
  fg_truecolor: string | null;
  bg_truecolor: string | null;
  decorations: string[];
}

export const PLAIN: TextStyle = { color: null, background: null, decorations: [] };

// every escape sequence except "CSI … m": other CSI, OSC (titles, links) up to its terminator, two-character ones, and
// incomplete ones at the end of the line
// eslint-disable-next-line no-control-regex
const OTHER_SEQUENCES = /\x1b(?:\[[0-?]*[ -/]*[@-ln-~]|\[[<-?][0-?]*m|\][^\x07\x1b]*(?:\x07|\x1b\\|$)|[@-Z\\-_=>]|[ -/][0-~]|$|\[[0-?]*$)/g;
// eslint-disable-next-line no-control-regex
const SGR_WITH_COLONS = /\x1b\[[\d;:]*:[\d;:]*m/g;
// eslint-disable-next-line no-control-regex
const CONTROL_CHARACTERS = /[\x00-\x08\x0b\x0c\x0e-\x1a\x1c-\x1f\x7f]/g;
const COLOR_NAMES = ["black", "red", "green", "yellow", "blue", "magenta", "cyan", "white"];
const DEFAULT_FONT = "10m"; // changes nothing: makes the parser apply the current style to the start of the line

/** Parses one line, starting with the style that the previous line ended with. */
export function parseAnsi(line: string, state: SgrState | null = null): { spans: Span[]; state: SgrState | null } {
  const text = lastOverwrite(line)
    .replace(OTHER_SEQUENCES, "")
    .replace(SGR_WITH_COLONS, (sequence) => sequence.replaceAll(":", ";"))
    .replace(CONTROL_CHARACTERS, "");
  if (state === null && !text.includes("\x1b")) return { spans: text ? [{ text, style: PLAIN }] : [], state };
  const parser = Object.assign(new Anser(), state) as Anser & ParserFields;
  const spans = `${DEFAULT_FONT}${text}`.split("\x1b[").flatMap((chunk) => {
    const { content, fg, bg, fg_truecolor, bg_truecolor, decorations } = parser.processChunkJson(chunk, { use_classes: true }, true);
    const style = { color: cssColor(fg, fg_truecolor), background: cssColor(bg, bg_truecolor), decorations: [...new Set(decorations)] };
    return content ? [{ text: content, style }] : [];
  });
  const { fg, bg, fg_truecolor, bg_truecolor, decorations } = parser;
  const isPlain = !fg && !bg && decorations.length === 0;
  return { spans, state: isPlain ? null : { fg, bg, fg_truecolor, bg_truecolor, decorations: [...new Set(decorations)] } };
}

/** Progress bars return to the start of the line and overwrite it: only the last version is visible. */
function lastOverwrite(line: string): string {
  const text = line.endsWith("\r") ? line.slice(0, -1) : line;
  return text.slice(text.lastIndexOf("\r") + 1);
}

/** Converts Anser's class names, such as "ansi-bright-red" and "ansi-palette-196". */
function cssColor(name: string | null, truecolor: string | null): string | null {
  if (!name) return null;
  if (name === "ansi-truecolor") return `rgb(${truecolor})`;
  const [, kind = "", detail = ""] = name.split("-");
  if (kind === "palette") return paletteColor(Number(detail));
  return String(kind === "bright" ? COLOR_NAMES.indexOf(detail) + 8 : COLOR_NAMES.indexOf(kind));
}

/** Colors 16 to 255: a cube of 6×6×6 colors and 24 grays. */
function paletteColor(index: number): string {
  if (index >= 232) return `rgb(${Array(3).fill(8 + 10 * (index - 232)).join(", ")})`;
  const level = (n: number) => (n ? 55 + 40 * n : 0);
  const cube = index - 16;
  return `rgb(${level(Math.floor(cube / 36))}, ${level(Math.floor(cube / 6) % 6)}, ${level(cube % 6)})`;
}
