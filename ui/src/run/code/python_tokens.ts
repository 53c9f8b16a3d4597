// Minimal Python highlighting: comments, strings, keywords, numbers and defined names.

export interface Token {
  kind: "" | "comment" | "string" | "keyword" | "number" | "name";
  text: string;
}

const KEYWORDS = new Set(
  `False None True and as assert async await break class continue def del elif else except finally for from global if
  import in is lambda nonlocal not or pass raise return try while with yield match case`.split(/\s+/),
);
const TOKEN =
  /#.*|(?:[rbfuRBFU]{0,2})(?:"""|'''|"(?:\\.|[^"\\])*"?|'(?:\\.|[^'\\])*'?)|\b(?:0[xob][\da-fA-F_]+|\d[\d_]*\.?\d*(?:[eE][+-]?\d+)?j?)\b|[A-Za-z_]\w*/g;
const MAX_LINE = 2000;

/** Returns a function that tokenizes a line. The lines inside multi-line strings are determined once. */
export function tokenizePython(lines: string[]): (index: number) => Token[] {
  const openQuotes: (string | null)[] = [];
  let quote: string | null = null;
  for (const line of lines) {
    openQuotes.push(quote);
    quote = lineTokens(line, quote).quote;
  }
  return (index) => lineTokens(lines[index] ?? "", openQuotes[index] ?? null).tokens;
}

function lineTokens(line: string, quote: string | null): { tokens: Token[]; quote: string | null } {
  if (line.length > MAX_LINE) return { tokens: [{ kind: "", text: line.slice(0, MAX_LINE) }], quote };
  const tokens: Token[] = [];
  let position = 0;
  let previous = "";
  const push = (kind: Token["kind"], text: string) => text && tokens.push({ kind, text });
  while (position < line.length) {
    if (quote !== null) {
      const end = line.indexOf(quote, position);
      const stop = end < 0 ? line.length : end + 3;
      push("string", line.slice(position, stop));
      position = stop;
      if (end >= 0) quote = null;
      continue;
    }
    TOKEN.lastIndex = position;
    const match = TOKEN.exec(line);
    if (!match) break;
    const text = match[0];
    push("", line.slice(position, match.index));
    position = match.index + text.length;
    if (text.endsWith('"""') || text.endsWith("'''")) {
      quote = text.slice(-3);
      push("string", text);
    } else if (text.startsWith("#")) push("comment", text);
    else if (/["']/.test(text)) push("string", text);
    else if (KEYWORDS.has(text)) push("keyword", text);
    else if (/^\d/.test(text)) push("number", text);
    else push(previous === "def" || previous === "class" ? "name" : "", text);
    previous = text;
  }
  push("", line.slice(position));
  return { tokens, quote };
}
