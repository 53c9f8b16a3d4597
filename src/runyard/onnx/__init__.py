"""Models to ONNX, checked number by number against what they were exported from.

    from runyard.onnx import export
    onnx_model = export(net, example_inputs, register_as='digits-onnx')

torch, onnx and the rest are the user's own packages: they are imported when something is exported, not before.
"""

from __future__ import annotations

from runyard.onnx.exporter import Exported, export, report

__all__ = ["Exported", "export", "report"]
