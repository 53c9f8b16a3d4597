// Lines onto a canvas. uPlot draws axes and finds places; lines are drawn here, since each has an x of its own.

import type { Line } from "./lines";

export interface Frame {
  context: CanvasRenderingContext2D;
  left: number; // in pixels of the canvas
  top: number;
  width: number;
  height: number;
  ratio: number; // pixels of the canvas for one of the page
  x: [number, number];
  y: [number, number];
  logarithmic: boolean;
  bad: string; // the colour of what is not a number
}

/** Bands first, then pale raw values, then the lines; among them the one that is pointed at last: it is on top. */
export function drawLines(frame: Frame, all: Line[], faded: (line: Line) => boolean): void {
  const lines = [...all].sort((a, b) => Number(faded(b)) - Number(faded(a)));
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
    drawWhatIsNoNumber(frame, line);
  }
  context.restore();
}

export function xPlace(frame: Frame, x: number): number {
  return frame.left + ((x - frame.x[0]) / (frame.x[1] - frame.x[0])) * frame.width;
}

export function yPlace(frame: Frame, y: number): number {
  const [low, high] = frame.y;
  const share = frame.logarithmic ? Math.log(y / low) / Math.log(high / low) : (y - low) / (high - low);
  return frame.top + (1 - share) * frame.height;
}

function drawPath(frame: Frame, line: Line, ys: Float64Array, strength: number, width: number): void {
  const { context, ratio } = frame;
  const [begin, end] = visible(line.xs, frame.x);
  context.globalAlpha = strength;
  context.strokeStyle = context.fillStyle = line.colour;
  context.lineWidth = width * ratio;
  context.setLineDash(line.dashed ? [5 * ratio, 4 * ratio] : []);
  context.beginPath();
  let open = 0; // points since the last gap
  for (let i = begin; i < end; i++) {
    const y = ys[i]!;
    if (!drawable(frame, y)) {
      if (open === 1) dot(frame, line.xs[i - 1]!, ys[i - 1]!);
      open = 0;
      continue;
    }
    if (open++) context.lineTo(xPlace(frame, line.xs[i]!), yPlace(frame, y));
    else context.moveTo(xPlace(frame, line.xs[i]!), yPlace(frame, y));
  }
  context.stroke();
  // one point alone has no line: it would not be seen at all
  if (open === 1) dot(frame, line.xs[end - 1]!, ys[end - 1]!);
  context.globalAlpha = 1;
}

function dot(frame: Frame, x: number, y: number): void {
  const { context, ratio } = frame;
  context.stroke();
  context.beginPath();
  context.arc(xPlace(frame, x), yPlace(frame, y), 2.6 * ratio, 0, 2 * Math.PI);
  context.fill();
  context.beginPath();
}

function drawBand(frame: Frame, line: Line, strength: number): void {
  const { context } = frame;
  const [begin, end] = visible(line.xs, frame.x);
  const floor = frame.logarithmic ? frame.y[0] : -Infinity;
  context.globalAlpha = strength;
  context.fillStyle = line.colour;
  let from = begin;
  for (let i = begin; i <= end; i++) {
    if (i < end && Number.isFinite(line.high![i]!)) continue;
    if (i > from) {
      context.beginPath();
      for (let k = from; k < i; k++) context.lineTo(xPlace(frame, line.xs[k]!), yPlace(frame, Math.max(floor, line.high![k]!)));
      for (let k = i - 1; k >= from; k--) context.lineTo(xPlace(frame, line.xs[k]!), yPlace(frame, Math.max(floor, line.low![k]!)));
      context.fill();
    }
    from = i + 1;
  }
  context.globalAlpha = 1;
}

/** NaN and infinity are events that people look for: small marks at the edge instead of a gap without a word. */
function drawWhatIsNoNumber(frame: Frame, line: Line): void {
  const { context, ratio, top, height } = frame;
  const values = line.raw ?? line.ys;
  const [begin, end] = visible(line.xs, frame.x);
  context.fillStyle = frame.bad;
  let last = -Infinity;
  for (let i = begin; i < end; i++) {
    const value = values[i]!;
    if (Number.isFinite(value) || line.members || line.gaps) continue;
    const x = xPlace(frame, line.xs[i]!);
    if (x - last < 3 * ratio) continue;
    last = x;
    const up = value === Infinity;
    const y = up ? top : top + height;
    const lean = (up ? 6 : -6) * ratio;
    context.beginPath();
    context.moveTo(x - 4 * ratio, y);
    context.lineTo(x + 4 * ratio, y);
    context.lineTo(x, y + lean);
    context.fill();
  }
}

function drawable(frame: Frame, y: number): boolean {
  return Number.isFinite(y) && !(frame.logarithmic && y <= 0);
}

/** The points inside of the range and one more on each side, so that lines leave the picture instead of ending in it. */
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
