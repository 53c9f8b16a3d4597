"""Eight-bit weights: smaller and often faster, and never taken on trust."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from runyard.errors import OnnxExportException
from runyard.onnx.packages import needed

INT8 = "int8"
_LARGEST_FILE_BYTES = 1_800_000_000  # one file of protobuf holds two gigabytes
_CONVOLUTIONS = {"Conv", "ConvTranspose"}


def quantize(source: Path, target: Path, calibration: Sequence[dict[str, Any]]) -> str:
    """How it was done: ``static`` with the recorded inputs where there are convolutions, else ``dynamic``.

    Dynamic quantisation leaves convolutions slow; static needs inputs to learn the ranges from, and loses more on
    recurrent nets and transformers.
    """
    onnx, tools = needed("onnx", "onnxruntime.quantization", why="quantize='int8'")
    model = onnx.load(str(source))
    static = any(node.op_type in _CONVOLUTIONS for node in model.graph.node)
    del model.graph.value_info[:]  # shapes between nodes, as the exporter saw them: the new nodes would contradict them
    bare = target.with_name("bare.onnx")
    onnx.save(model, str(bare), save_as_external_data=model.ByteSize() > _LARGEST_FILE_BYTES)
    root = logging.getLogger()
    level = root.level
    root.setLevel(logging.ERROR)  # it advises on the root logger to preprocess what was just optimised
    try:
        if static:
            tools.quantize_static(
                str(bare),
                str(target),
                _calibration(tools, calibration),
                quant_format=tools.QuantFormat.QDQ,
                per_channel=True,
                activation_type=tools.QuantType.QUInt8,
                weight_type=tools.QuantType.QInt8,
            )
        else:
            tools.quantize_dynamic(str(bare), str(target), weight_type=tools.QuantType.QInt8)
    except Exception as error:
        raise OnnxExportException(
            f"the model could not be quantized: {type(error).__name__}: {str(error)[:400]}",
            hint="quantize=None keeps its weights as they are",
            inner_exception=error,
        ) from error
    finally:
        root.setLevel(level)
    return "static" if static else "dynamic"


def _calibration(tools: Any, inputs: Sequence[dict[str, Any]]) -> Any:
    class Calibration(tools.CalibrationDataReader):  # type: ignore[misc]
        def __init__(self) -> None:
            self._left: Iterator[dict[str, Any]] = iter(inputs)

        def get_next(self) -> Any:
            return next(self._left, None)

    return Calibration()
