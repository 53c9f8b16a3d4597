// The yard counts whole letters (code points), the browser halves of some (UTF-16 units): an emoji is one there and two here.

/** How many letters stand before a place of ours. */
export function lettersTo(text: string, at: number): number {
  return [...text.slice(0, at)].length;
}

/** The place of ours that has so many letters before it. */
export function placeAfter(text: string, letters: number): number {
  return [...text].slice(0, letters).join("").length;
}
