// What the yard has no stream for is asked for again, for as long as somebody looks.

/** Asks now, and again so long after each answer; not while the page is hidden. Return it from an `$effect`. */
export function againAndAgain(ask: () => Promise<void>, ms: number | (() => number)): () => void {
  let ended = false;
  let asking = false;
  let timer: ReturnType<typeof setTimeout> | undefined;

  async function go(): Promise<void> {
    if (ended || asking || document.hidden) return;
    clearTimeout(timer);
    asking = true;
    await ask();
    asking = false;
    if (!ended) timer = setTimeout(() => void go(), typeof ms === "number" ? ms : ms());
  }

  const seen = () => void go();
  document.addEventListener("visibilitychange", seen);
  void go();
  return () => {
    ended = true;
    clearTimeout(timer);
    document.removeEventListener("visibilitychange", seen);
  };
}
