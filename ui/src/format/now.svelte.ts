// The time, for whatever says "3 min ago": one tick a second for all, none while the page is hidden.

class Now {
  #seconds = $state(Date.now() / 1000);
  #users = 0;
  #timer: ReturnType<typeof setInterval> | undefined;

  get seconds(): number {
    return this.#seconds;
  }

  /** Call in an `$effect` and return what it returns. */
  use(): () => void {
    if (this.#users++ === 0) {
      this.#timer = setInterval(() => {
        if (!document.hidden) this.#seconds = Date.now() / 1000;
      }, 1000);
      this.#seconds = Date.now() / 1000;
    }
    return () => {
      if (--this.#users === 0) clearInterval(this.#timer);
    };
  }
}

export const now = new Now();
