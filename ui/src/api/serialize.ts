/**
 * Runs `work` one call at a time, so that no response overtakes another. Calls made during a run are answered by one
 * further run after it.
 */
export function serialize(work: () => Promise<void>): () => Promise<void> {
  let running: Promise<void> | null = null;
  let repeat = false;

  async function run(): Promise<void> {
    try {
      do {
        repeat = false;
        await work();
      } while (repeat);
    } finally {
      running = null;
    }
  }

  return () => {
    repeat = running !== null;
    return (running ??= run());
  };
}
