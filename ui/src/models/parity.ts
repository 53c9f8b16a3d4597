// The report that an exported model brings along: how far it is from the original. Pure.

export interface Case {
  name: string;
  batch: number | null;
  passed?: boolean;
  outputs: { name: string; max_abs: number; max_rel: number; different: number; of: number }[];
}

export interface Parity {
  passed: boolean;
  rtol: number;
  atol: number;
  share?: number; // of the values that may be further apart, as they are after quantisation
  cases: Case[];
}

export interface Port {
  name: string;
  dtype: string;
  shape: (number | string | null)[];
}

export interface OnnxReport {
  exporter?: string;
  opset?: number;
  quantized?: string | null;
  dynamic_batch?: boolean;
  made_by?: Record<string, string>;
  inputs?: Port[];
  outputs?: Port[];
  parity?: Parity | null;
}

/** The largest difference of all cases, and how many numbers were compared. */
export function summary(parity: Parity): { worst: number; compared: number; different: number } {
  const outputs = parity.cases.flatMap((one) => one.outputs);
  return {
    worst: Math.max(0, ...outputs.map((one) => one.max_abs)),
    compared: outputs.reduce((sum, one) => sum + one.of, 0),
    different: outputs.reduce((sum, one) => sum + one.different, 0),
  };
}

/** "float32 [batch, 1, 28, 28]" */
export function portWords(port: Port): string {
  return `${port.dtype} [${port.shape.map((size) => size ?? "?").join(", ")}]`;
}
