// Python, coloured a little: comments, strings, keywords, numbers, and the names of what is defined.

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
const LONGEST = 2000;

/** A function that gives a line's tokens. Which lines begin inside of a long string is found once, for all. */
export function tokensOf(lines: string[]): (index: number) => Token[] {
  const inside: (string | null)[] = [];
  let quote: string | null = null;
  for (const line of lines) {
    inside.push(quote);
    quote = lineTokens(line, quote).quote;
  }
  return (index) => lineTokens(lines[index] ?? "", inside[index] ?? null).tokens;
}

function lineTokens(line: string, quote: string | null): { tokens: Token[]; quote: string | null } {
  if (line.length > LONGEST) return { tokens: [{ kind: "", text: line.slice(0, LONGEST) }], quote };
  const tokens: Token[] = [];
  let at = 0;
  let before = "";
  const push = (kind: Token["kind"], text: string) => text && tokens.push({ kind, text });
  while (at < line.length) {
    if (quote !== null) {
      const end = line.indexOf(quote, at);
      const stop = end < 0 ? line.length : end + 3;
      push("string", line.slice(at, stop));
      at = stop;
      if (end >= 0) quote = null;
      continue;
    }
    TOKEN.lastIndex = at;
    const match = TOKEN.exec(line);
    if (!match) break;
    const text = match[0];
    push("", line.slice(at, match.index));
    at = match.index + text.length;
    if (text.endsWith('"""') || text.endsWith("'''")) {
      quote = text.slice(-3);
      push("string", text);
    } else if (text.startsWith("#")) push("comment", text);
    else if (/["']/.test(text)) push("string", text);
    else if (KEYWORDS.has(text)) push("keyword", text);
    else if (/^\d/.test(text)) push("number", text);
    else push(before === "def" || before === "class" ? "name" : "", text);
    before = text;
  }
  push("", line.slice(at));
  return { tokens, quote };
}
