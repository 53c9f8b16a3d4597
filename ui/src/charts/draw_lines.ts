// Draws lines onto a canvas. uPlot draws the axes; lines are drawn here because each has its own x values.

import type { Line } from "./lines";

export interface Frame {
  context: CanvasRenderingContext2D;
  left: number; // in canvas pixels
  top: number;
  width: number;
  height: number;
  ratio: number; // canvas pixels per CSS pixel
  x: [number, number];
  y: [number, number];
  logarithmic: boolean;
  bad: string; // color of NaN and infinity markers
}

/** Draws bands first, then pale raw values, then the lines; the hovered line comes last, on top. */
export function drawLines(frame: Frame, unsorted: Line[], faded: (line: Line) => boolean): void {
  const lines = [...unsorted].sort((a, b) => Number(faded(b)) - Number(faded(a)));
  const { context, left, top, width, height } = frame;
  context.save();
  context.beginPath();
  context.rect(left, top, width, height);
  context.clip();
  context.lineJoin = "round";
  for (const line of lines) {
    if (line.low && line.high) drawBand(frame, line, faded(line) ? 0.05 : 0.16);
  }
  for (const line of lines) {
    if (line.raw) drawPath(frame, line, line.raw, faded(line) ? 0.06 : 0.28, 1);
  }
  for (const line of lines) {
    drawPath(frame, line, line.ys, faded(line) ? 0.18 : 1, 1.6);
    drawNonFinite(frame, line);
  }
  context.restore();
}

export function xPixel(frame: Frame, x: number): number {
  return frame.left + ((x - frame.x[0]) / (frame.x[1] - frame.x[0])) * frame.width;
}

export function yPixel(frame: Frame, y: number): number {
  const [low, high] = frame.y;
  const share = frame.logarithmic ? Math.log(y / low) / Math.log(high / low) : (y - low) / (high - low);
  return frame.top + (1 - share) * frame.height;
}

function drawPath(frame: Frame, line: Line, ys: Float64Array, opacity: number, width: number): void {
  const { context, ratio } = frame;
  const [begin, end] = visible(line.xs, frame.x);
  context.globalAlpha = opacity;
  context.strokeStyle = context.fillStyle = line.color;
  context.lineWidth = width * ratio;
  context.setLineDash(line.dashed ? [5 * ratio, 4 * ratio] : []);
  context.beginPath();
  let run = 0; // points since the last gap
  for (let i = begin; i < end; i++) {
    const y = ys[i]!;
    if (!drawable(frame, y)) {
      if (run === 1) dot(frame, line.xs[i - 1]!, ys[i - 1]!);
      run = 0;
      continue;
    }
    if (run++) context.lineTo(xPixel(frame, line.xs[i]!), yPixel(frame, y));
    else context.moveTo(xPixel(frame, line.xs[i]!), yPixel(frame, y));
  }
  context.stroke();
  // a single point has no line: draw it as a dot
  if (run === 1) dot(frame, line.xs[end - 1]!, ys[end - 1]!);
  context.globalAlpha = 1;
}

function dot(frame: Frame, x: number, y: number): void {
  const { context, ratio } = frame;
  context.stroke();
  context.beginPath();
  context.arc(xPixel(frame, x), yPixel(frame, y), 2.6 * ratio, 0, 2 * Math.PI);
  context.fill();
  context.beginPath();
}

function drawBand(frame: Frame, line: Line, opacity: number): void {
  const { context } = frame;
  const [begin, end] = visible(line.xs, frame.x);
  const floor = frame.logarithmic ? frame.y[0] : -Infinity;
  context.globalAlpha = opacity;
  context.fillStyle = line.color;
  let from = begin;
  for (let i = begin; i <= end; i++) {
    if (i < end && Number.isFinite(line.high![i]!)) continue;
    if (i > from) {
      context.beginPath();
      for (let k = from; k < i; k++) context.lineTo(xPixel(frame, line.xs[k]!), yPixel(frame, Math.max(floor, line.high![k]!)));
      for (let k = i - 1; k >= from; k--) context.lineTo(xPixel(frame, line.xs[k]!), yPixel(frame, Math.max(floor, line.low![k]!)));
      context.fill();
    }
    from = i + 1;
  }
  context.globalAlpha = 1;
}

/** Marks NaN and infinity at the edge: users look for them, and a gap would hide them. */
function drawNonFinite(frame: Frame, line: Line): void {
  const { context, ratio, top, height } = frame;
  const values = line.raw ?? line.ys;
  const [begin, end] = visible(line.xs, frame.x);
  context.fillStyle = frame.bad;
  let last = -Infinity;
  for (let i = begin; i < end; i++) {
    const value = values[i]!;
    if (Number.isFinite(value) || line.members || line.gaps) continue;
    const x = xPixel(frame, line.xs[i]!);
    if (x - last < 3 * ratio) continue;
    last = x;
    const up = value === Infinity;
    const y = up ? top : top + height;
    const tip = (up ? 6 : -6) * ratio;
    context.beginPath();
    context.moveTo(x - 4 * ratio, y);
    context.lineTo(x + 4 * ratio, y);
    context.lineTo(x, y + tip);
    context.fill();
  }
}

function drawable(frame: Frame, y: number): boolean {
  return Number.isFinite(y) && !(frame.logarithmic && y <= 0);
}

/** The points inside the range and one more on each side, so that lines continue to the edge. */
function visible(xs: Float64Array, [low, high]: [number, number]): [number, number] {
  return [Math.max(0, below(xs, low) - 1), Math.min(xs.length, below(xs, high) + 2)];
}

function below(xs: Float64Array, x: number): number {
  let low = 0;
  let high = xs.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (xs[middle]! < x) low = middle + 1;
    else high = middle;
  }
  return low;
}
