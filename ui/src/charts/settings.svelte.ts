// How charts are looked at, for all charts of a page. It is in the address: who gets the link sees the same.

import { router } from "../router/router.svelte";
import type { Axis } from "./lines";

const AXES: readonly string[] = ["step", "time", "relative"];

class ChartSettings {
  smoothing = $derived(fraction(router.query.get("smooth")));
  axis = $derived(axisOf(router.query.get("axis")));
  logarithmic = $derived(router.query.get("scale") === "log");

  setSmoothing(weight: number): void {
    router.set({ smooth: weight > 0 ? weight : null });
  }

  setAxis(axis: Axis): void {
    router.set({ axis: axis === "step" ? null : axis });
  }

  setLogarithmic(on: boolean): void {
    router.set({ scale: on ? "log" : null });
  }
}

function fraction(text: string | null): number {
  const number = Number(text ?? 0);
  return number > 0 && number < 1 ? number : 0;
}

function axisOf(text: string | null): Axis {
  return text !== null && AXES.includes(text) ? (text as Axis) : "step";
}

export const chartSettings = new ChartSettings();
