// Which rows of a long list are rendered, and which pages are loaded.

export interface Range {
  from: number;
  to: number; // exclusive
}

const OVERSCAN = 12; // rows rendered above and below the viewport, so that scrolling shows no gap

export function visibleRange(scrollTop: number, height: number, rowHeight: number, total: number): Range {
  const first = Math.floor(scrollTop / rowHeight);
  const last = Math.ceil((scrollTop + height) / rowHeight);
  return { from: Math.max(0, Math.min(first - OVERSCAN, total)), to: Math.max(0, Math.min(last + OVERSCAN, total)) };
}

/** The maximum number of rows of `visibleRange`. */
export function maxVisibleRows(height: number, rowHeight: number): number {
  return Math.ceil(Math.max(0, height) / rowHeight) + 1 + 2 * OVERSCAN;
}

export function pagesOf(range: Range, size: number): number[] {
  if (range.to <= range.from) return [];
  const pages = [];
  for (let page = Math.floor(range.from / size); page * size < range.to; page += 1) pages.push(page);
  return pages;
}

/** The scroll position that makes the row at `index` fully visible; null if it already is. */
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
