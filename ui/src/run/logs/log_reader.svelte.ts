// Reads one log by pieces, as they are looked at, and what is new at its end.

import { asProblem, isAbort, type Problem } from "../../api/http";
import { getLogBytes } from "../api";
import { LogDocument, PIECE_BYTES } from "./log_document";

export const SMALL_BYTES = 2 * 1024 * 1024; // up to here a log is read whole, and each line has its number
const MOST_AT_ONCE = 8 * PIECE_BYTES;

export class LogReader {
  readonly document = new LogDocument();
  version = $state(0); // changes when the document did
  trouble = $state.raw<Problem | null>(null);
  #asking = new Set<number>();

  constructor(
    readonly id: string,
    readonly name: string,
  ) {}

  grow(size: number): void {
    if (size === this.document.size) return;
    this.document.grow(size);
    this.version++;
  }

  get isSmall(): boolean {
    return this.document.size <= SMALL_BYTES;
  }

  /** Sees to it that the bytes from `from` to `to` are here. */
  async read(from: number, to: number): Promise<void> {
    const { size } = this.document;
    const parts = this.document.wanted(Math.max(0, from), to).flatMap(partsOf);
    const fresh = parts.filter(([offset]) => !this.#asking.has(offset)).reverse(); // its end is looked at first
    await Promise.all(fresh.map(([offset, length]) => this.#fetch(offset, length)));
    const grown = this.document.size;
    // it grew meanwhile: who asked for its end has to get it, also when it never grows again
    if (fresh.length && to >= size && grown > size) await this.read(grown - (to - from), grown);
  }

  /** The pieces around a place: enough to go some screens up and down. */
  around(offset: number): Promise<void> {
    return this.read(offset - PIECE_BYTES, offset + 2 * PIECE_BYTES);
  }

  async #fetch(offset: number, length: number): Promise<void> {
    this.#asking.add(offset);
    try {
      this.document.put(offset, await getLogBytes(this.id, this.name, offset, length));
      this.trouble = null;
    } catch (error) {
      if (!isAbort(error)) this.trouble = asProblem(error);
    } finally {
      this.#asking.delete(offset);
      this.version++;
    }
  }
}

/** What is fetched by one request each. They begin where pieces do: bytes that come before those ahead of them count. */
function partsOf([offset, length]: [number, number]): [number, number][] {
  const found: [number, number][] = [];
  for (let at = offset; at < offset + length; ) {
    const end = Math.min(offset + length, (Math.floor(at / MOST_AT_ONCE) + 1) * MOST_AT_ONCE);
    found.push([at, end - at]);
    at = end;
  }
  return found;
}
