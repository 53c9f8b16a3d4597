// A box that reaches down to the lower edge of the window, as long as that leaves it a useful height.

const LEAST = 420;
const BELOW = 16;

export function fill(element: HTMLElement): { destroy: () => void } {
  const scroller = element.closest("main");

  function measure(): void {
    const top = element.getBoundingClientRect().top + (scroller?.scrollTop ?? 0);
    element.style.height = `${Math.max(LEAST, window.innerHeight - top - BELOW)}px`;
  }

  // what is above may come later or change: a verdict, a warning, the names of the tags
  const watcher = new ResizeObserver(measure);
  if (element.parentElement?.parentElement) watcher.observe(element.parentElement.parentElement);
  window.addEventListener("resize", measure);
  measure();
  return {
    destroy: () => {
      watcher.disconnect();
      window.removeEventListener("resize", measure);
    },
  };
}
