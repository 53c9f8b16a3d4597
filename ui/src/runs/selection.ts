// The selected runs, in order of selection. Part of the URL, so their number is limited.

export const MAX_SELECTED = 100;

export class Selection {
  readonly #ids: Set<string>;

  constructor(ids: Iterable<string>) {
    this.#ids = new Set([...ids].slice(0, MAX_SELECTED));
  }

  static fromText(text: string | null): Selection {
    return new Selection((text ?? "").split(",").filter(Boolean));
  }

  toText(): string {
    return this.ids.join(",");
  }

  get ids(): string[] {
    return [...this.#ids];
  }

  get size(): number {
    return this.#ids.size;
  }

  get last(): string | null {
    return this.ids.at(-1) ?? null;
  }

  has(id: string): boolean {
    return this.#ids.has(id);
  }

  toggle(id: string): Selection {
    return this.has(id) ? new Selection(this.ids.filter((other) => other !== id)) : this.with([id]);
  }

  with(ids: readonly string[]): Selection {
    return new Selection([...this.#ids, ...ids]);
  }
}
