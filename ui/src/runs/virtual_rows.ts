// Which of very many rows are to be drawn, and which pages of them are to be asked for. Pure.

export interface Range {
  from: number;
  to: number; // not included
}

const BEYOND = 12; // rows drawn above and below what is seen, so that a turn of the wheel shows no gap

export function visibleRange(scrollTop: number, height: number, rowHeight: number, total: number): Range {
  const first = Math.floor(scrollTop / rowHeight);
  const last = Math.ceil((scrollTop + height) / rowHeight);
  return { from: Math.max(0, Math.min(first - BEYOND, total)), to: Math.max(0, Math.min(last + BEYOND, total)) };
}

/** The most rows that `visibleRange` ever has at once. */
export function rowsDrawn(height: number, rowHeight: number): number {
  return Math.ceil(Math.max(0, height) / rowHeight) + 1 + 2 * BEYOND;
}

export function pagesOf(range: Range, size: number): number[] {
  if (range.to <= range.from) return [];
  const pages = [];
  for (let page = Math.floor(range.from / size); page * size < range.to; page += 1) pages.push(page);
  return pages;
}

/** Where to scroll so that the row at `index` is seen whole; null if it is already. */
export function scrollToShow(
  index: number,
  rowHeight: number,
  scrollTop: number,
  height: number,
): number | null {
  const top = index * rowHeight;
  if (top < scrollTop) return top;
  if (top + rowHeight > scrollTop + height) return top + rowHeight - height;
  return null;
}
