// Options of all charts on a page. They are part of the URL, so that a shared link shows the same charts.

import { router } from "../router/router.svelte";
import type { Axis } from "./lines";

const AXES: readonly string[] = ["step", "time", "relative"];

class ChartSettings {
  smoothing = $derived(parseFraction(router.query.get("smooth")));
  axis = $derived(parseAxis(router.query.get("axis")));
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

function parseFraction(text: string | null): number {
  const number = Number(text ?? 0);
  return number > 0 && number < 1 ? number : 0;
}

function parseAxis(text: string | null): Axis {
  return text !== null && AXES.includes(text) ? (text as Axis) : "step";
}

export const chartSettings = new ChartSettings();
