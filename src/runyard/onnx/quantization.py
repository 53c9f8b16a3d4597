"""Quantization to 8-bit weights."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from runyard.errors import OnnxExportException
from runyard.onnx.packages import require

INT8 = "int8"
_LARGEST_FILE_BYTES = 1_800_000_000  # a protobuf file is limited to 2 GB
_CONVOLUTIONS = {"Conv", "ConvTranspose"}


def quantize(source: Path, target: Path, calibration: Sequence[dict[str, Any]]) -> str:
    """Quantize a model; return the method: ``static`` for models with convolutions, else ``dynamic``.

    Convolutions stay slow with dynamic quantization. Static quantization needs inputs to calibrate the value ranges,
    and loses more accuracy on recurrent networks and transformers.
    """
    onnx, tools = require("onnx", "onnxruntime.quantization", purpose="quantize='int8'")
    model = onnx.load(str(source))
    is_static = any(node.op_type in _CONVOLUTIONS for node in model.graph.node)
    del model.graph.value_info[:]  # the exporter's shapes between nodes would contradict the new nodes
    stripped = target.with_name("stripped.onnx")
    onnx.save(model, str(stripped), save_as_external_data=model.ByteSize() > _LARGEST_FILE_BYTES)
    root = logging.getLogger()
    level = root.level
    root.setLevel(logging.ERROR)  # it logs advice to preprocess a model that is optimized already
    try:
        if is_static:
            tools.quantize_static(
                str(stripped),
                str(target),
                _calibration(tools, calibration),
                quant_format=tools.QuantFormat.QDQ,
                per_channel=True,
                activation_type=tools.QuantType.QUInt8,
                weight_type=tools.QuantType.QInt8,
            )
        else:
            tools.quantize_dynamic(str(stripped), str(target), weight_type=tools.QuantType.QInt8)
    except Exception as error:
        raise OnnxExportException(
            f"cannot quantize the model: {type(error).__name__}: {str(error)[:400]}",
            hint="quantize=None does not change the weights",
            inner_exception=error,
        ) from error
    finally:
        root.setLevel(level)
    return "static" if is_static else "dynamic"


def _calibration(tools: Any, inputs: Sequence[dict[str, Any]]) -> Any:
    class Calibration(tools.CalibrationDataReader):  # type: ignore[misc]
        def __init__(self) -> None:
            self._remaining: Iterator[dict[str, Any]] = iter(inputs)

        def get_next(self) -> Any:
            return next(self._remaining, None)

    return Calibration()
