// Tables in text files: comma, semicolon or tab between the cells, quotes around what needs them.

export interface Sheet {
  columns: string[];
  rows: string[][];
  more: boolean; // the text went on
}

export function sheetOf(text: string, mostRows = 500, cutShort = false): Sheet {
  const separator = separatorOf(text);
  const rows: string[][] = [];
  let row: string[] = [];
  let cell = "";
  let quoted = false;
  let at = text.startsWith("\ufeff") ? 1 : 0;
  for (; at < text.length && rows.length <= mostRows; at++) {
    const letter = text[at]!;
    if (quoted) {
      if (letter !== '"') cell += letter;
      else if (text[at + 1] === '"') {
        cell += '"';
        at++;
      } else quoted = false;
    } else if (letter === '"' && cell === "") quoted = true;
    else if (letter === separator) {
      row.push(cell);
      cell = "";
    } else if (letter === "\n") {
      row.push(cell.endsWith("\r") ? cell.slice(0, -1) : cell);
      rows.push(row);
      row = [];
      cell = "";
    } else cell += letter;
  }
  const more = at < text.length || cutShort;
  // the last line of a text that was cut is half a line
  if (!more && (cell || row.length)) rows.push([...row, cell]);
  const [columns = [], ...rest] = rows;
  return { columns, rows: rest.slice(0, mostRows), more };
}

function separatorOf(text: string): string {
  const end = text.indexOf("\n");
  const first = end < 0 ? text : text.slice(0, end);
  const count = (letter: string) => first.split(letter).length;
  return [",", "\t", ";"].reduce((best, letter) => (count(letter) > count(best) ? letter : best));
}
