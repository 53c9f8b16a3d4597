const MIN_HEIGHT = 420;
const BOTTOM_MARGIN = 16;

/** Action: extends an element to the lower edge of the window, but keeps a minimum height. */
export function fillHeight(element: HTMLElement): { destroy: () => void } {
  const scroller = element.closest("main");

  function measure(): void {
    const top = element.getBoundingClientRect().top + (scroller?.scrollTop ?? 0);
    element.style.height = `${Math.max(MIN_HEIGHT, window.innerHeight - top - BOTTOM_MARGIN)}px`;
  }

  // elements above may appear or change later: the outcome, warnings, tags
  const observer = new ResizeObserver(measure);
  if (element.parentElement?.parentElement) observer.observe(element.parentElement.parentElement);
  window.addEventListener("resize", measure);
  measure();
  return {
    destroy: () => {
      observer.disconnect();
      window.removeEventListener("resize", measure);
    },
  };
}
