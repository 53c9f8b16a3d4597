// Where somebody points, for all charts of a page: the same step is marked in each of them.

import type { Axis } from "./lines";

class Pointer {
  x = $state<number | null>(null);
  axis = $state<Axis>("step");
  source = $state.raw<object | null>(null);

  at(x: number, axis: Axis, source: object): void {
    this.x = x;
    this.axis = axis;
    this.source = source;
  }

  away(source: object): void {
    if (this.source !== source) return;
    this.x = null;
    this.source = null;
  }
}

export const pointer = new Pointer();
