// What is asked again whenever something changed, faster perhaps than it is answered.

/** Does `work` one at a time, so that no answer overtakes another; asked for meanwhile, it is done once more after. */
export function inTurn(work: () => Promise<void>): () => Promise<void> {
  let going: Promise<void> | null = null;
  let again = false;

  async function go(): Promise<void> {
    try {
      do {
        again = false;
        await work();
      } while (again);
    } finally {
      going = null;
    }
  }

  return () => {
    again = going !== null;
    return (going ??= go());
  };
}
