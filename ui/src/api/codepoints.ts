// The server counts code points, JavaScript counts UTF-16 units: an emoji has length one there and two here.

/** Number of code points in the first `index` UTF-16 units of `text`. */
export function lengthInCodepoints(text: string, index: number): number {
  return [...text.slice(0, index)].length;
}

/** The UTF-16 index that follows the first `count` code points of `text`. */
export function utf16Index(text: string, count: number): number {
  return [...text].slice(0, count).join("").length;
}
