// The parity report of an ONNX export.

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
  share?: number; // of the values that may exceed the tolerance, for quantized models
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

/** The largest difference of all cases, and the number of compared values. */
export function summary(parity: Parity): { worst: number; compared: number; different: number } {
  const outputs = parity.cases.flatMap((testCase) => testCase.outputs);
  return {
    worst: Math.max(0, ...outputs.map(({ max_abs }) => max_abs)),
    compared: outputs.reduce((sum, output) => sum + output.of, 0),
    different: outputs.reduce((sum, output) => sum + output.different, 0),
  };
}

/** "float32 [batch, 1, 28, 28]" */
export function portLabel(port: Port): string {
  return `${port.dtype} [${port.shape.map((size) => size ?? "?").join(", ")}]`;
}
