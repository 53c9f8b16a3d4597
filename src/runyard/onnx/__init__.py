"""Export of models to ONNX, with a numerical comparison against the original.

    from runyard.onnx import export
    onnx_model = export(net, example_inputs, register_as='digits-onnx')

torch, onnx and the other packages belong to the user's environment and are imported only when a model is exported.
"""

from __future__ import annotations

from runyard.onnx.exporter import Exported, export, report

__all__ = ["Exported", "export", "report"]
