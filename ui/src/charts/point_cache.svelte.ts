// The points that one chart has: an overview that grows at its end, and the part that somebody zoomed into.

import { isAbort } from "../api/http";
import { askNewPoints, askPoints, type Wanted } from "./point_requests";
import type { Axis } from "./lines";
import { append } from "./merge";
import type { Points } from "./points";

export const MOST = 1200; // about as many as a chart has pixels

export class Held {
  overview = $state.raw<ReadonlyMap<string, Points>>(new Map());
  zoomed = $state.raw<ReadonlyMap<string, Points> | null>(null);
  trouble = $state.raw<unknown>(null);
  waiting = $state(false);
  #asking = false;
  #next: Wanted[] | null = null;
  #zoom = 0;

  /** What is not here yet comes whole; of what is here, only what is new. */
  async update(wanted: Wanted[]): Promise<void> {
    if (this.#asking) {
      this.#next = wanted; // more came while we asked: once more afterwards, not many times beside each other
      return;
    }
    this.#asking = true;
    this.waiting = this.overview.size === 0;
    try {
      const found = await Promise.all(wanted.map((one) => this.#current(one)));
      this.overview = new Map(wanted.map((one, i) => [keyOf(one), found[i]!]));
      this.trouble = null;
    } catch (error) {
      if (!isAbort(error)) this.trouble = error;
    } finally {
      this.#asking = this.waiting = false;
    }
    const next = this.#next;
    this.#next = null;
    if (next) await this.update(next);
  }

  /** The range at full detail; until it is here, the overview's points of it are shown. */
  async zoom(wanted: Wanted[], axis: Axis, range: [number, number] | null): Promise<void> {
    const turn = ++this.#zoom;
    this.zoomed = null;
    if (range === null) return;
    try {
      const ask = { most: MOST, axis, from: range[0], to: range[1] };
      const found = await Promise.all(wanted.map((one) => askPoints(one, ask)));
      if (turn === this.#zoom) this.zoomed = new Map(wanted.map((one, i) => [keyOf(one), found[i]!]));
    } catch (error) {
      if (!isAbort(error) && turn === this.#zoom) this.trouble = error;
    }
  }

  async #current(wanted: Wanted): Promise<Points> {
    const held = this.overview.get(keyOf(wanted));
    const whole = { most: MOST, axis: "step" as const, from: null, to: null };
    if (!held) return askPoints(wanted, whole);
    return append(held, await askNewPoints(wanted, whole, held.next), MOST);
  }
}

export function keyOf({ runId, name }: Wanted): string {
  return `${runId}\n${name}`;
}
