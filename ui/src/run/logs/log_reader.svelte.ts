// Loads the visible pieces of one log, and new bytes at its end.

import { asProblem, isAbort, type Problem } from "../../api/http";
import { getLogBytes } from "../api";
import { LogDocument, PIECE_BYTES } from "./log_document";

export const SMALL_BYTES = 2 * 1024 * 1024; // up to this size, logs are loaded completely
const MAX_REQUEST_BYTES = 8 * PIECE_BYTES;

export class LogReader {
  readonly document = new LogDocument();
  version = $state(0); // changes with the document
  problem = $state.raw<Problem | null>(null);
  #pending = new Set<number>();

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

  /** Loads the bytes from `from` to `to` if they are missing. */
  async read(from: number, to: number): Promise<void> {
    const { size } = this.document;
    const parts = this.document.missing(Math.max(0, from), to).flatMap(splitRange);
    const fresh = parts.filter(([offset]) => !this.#pending.has(offset)).reverse(); // the end is usually visible first
    await Promise.all(fresh.map(([offset, length]) => this.#fetch(offset, length)));
    const grown = this.document.size;
    // the log grew during the request: the caller wants its end, which may not grow again
    if (fresh.length && to >= size && grown > size) await this.read(grown - (to - from), grown);
  }

  /** Loads the pieces around an offset, enough to scroll some screens up and down. */
  readAround(offset: number): Promise<void> {
    return this.read(offset - PIECE_BYTES, offset + 2 * PIECE_BYTES);
  }

  async #fetch(offset: number, length: number): Promise<void> {
    this.#pending.add(offset);
    try {
      this.document.put(offset, await getLogBytes(this.id, this.name, offset, length));
      this.problem = null;
    } catch (error) {
      if (!isAbort(error)) this.problem = asProblem(error);
    } finally {
      this.#pending.delete(offset);
      this.version++;
    }
  }
}

/** Splits a range into requests aligned to pieces, so that they can arrive in any order. */
function splitRange([offset, length]: [number, number]): [number, number][] {
  const ranges: [number, number][] = [];
  for (let start = offset; start < offset + length; ) {
    const end = Math.min(offset + length, (Math.floor(start / MAX_REQUEST_BYTES) + 1) * MAX_REQUEST_BYTES);
    ranges.push([start, end - start]);
    start = end;
  }
  return ranges;
}
