// The current time for texts such as "3 min ago": one shared timer that pauses while the page is hidden.

class Now {
  #seconds = $state(Date.now() / 1000);
  #users = 0;
  #timer: ReturnType<typeof setInterval> | undefined;

  get seconds(): number {
    return this.#seconds;
  }

  /** Call in an `$effect` and return the result. */
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
