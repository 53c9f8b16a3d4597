/**
 * Calls `load` now, and again `ms` after each call has finished; pauses while the page is hidden. For data that the
 * server does not stream. Return the result from an `$effect`.
 */
export function poll(load: () => Promise<void>, ms: number | (() => number)): () => void {
  let stopped = false;
  let loading = false;
  let timer: ReturnType<typeof setTimeout> | undefined;

  async function run(): Promise<void> {
    if (stopped || loading || document.hidden) return;
    clearTimeout(timer);
    loading = true;
    await load();
    loading = false;
    if (!stopped) timer = setTimeout(() => void run(), typeof ms === "number" ? ms : ms());
  }

  const onVisibilityChange = () => void run();
  document.addEventListener("visibilitychange", onVisibilityChange);
  void run();
  return () => {
    stopped = true;
    clearTimeout(timer);
    document.removeEventListener("visibilitychange", onVisibilityChange);
  };
}
