// CSV files with comma, semicolon or tab as separator.

export interface CsvTable {
  columns: string[];
  rows: string[][];
  truncated: boolean;
}

export function parseCsv(text: string, maxRows = 500, textTruncated = false): CsvTable {
  const separator = detectSeparator(text);
  const rows: string[][] = [];
  let row: string[] = [];
  let cell = "";
  let quoted = false;
  let position = text.startsWith("\ufeff") ? 1 : 0;
  for (; position < text.length && rows.length <= maxRows; position++) {
    const character = text[position]!;
    if (quoted) {
      if (character !== '"') cell += character;
      else if (text[position + 1] === '"') {
        cell += '"';
        position++;
      } else quoted = false;
    } else if (character === '"' && cell === "") quoted = true;
    else if (character === separator) {
      row.push(cell);
      cell = "";
    } else if (character === "\n") {
      row.push(cell.endsWith("\r") ? cell.slice(0, -1) : cell);
      rows.push(row);
      row = [];
      cell = "";
    } else cell += character;
  }
  const truncated = position < text.length || textTruncated;
  // the last line of a truncated text is incomplete
  if (!truncated && (cell || row.length)) rows.push([...row, cell]);
  const [columns = [], ...rest] = rows;
  return { columns, rows: rest.slice(0, maxRows), truncated };
}

function detectSeparator(text: string): string {
  const end = text.indexOf("\n");
  const firstLine = end < 0 ? text : text.slice(0, end);
  const count = (separator: string) => firstLine.split(separator).length;
  return [",", "\t", ";"].reduce((best, separator) => (count(separator) > count(best) ? separator : best));
}
