// The pointer position that all charts of a page share, so that each marks the same step.

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
