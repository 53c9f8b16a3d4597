"""Exports each network and records the results."""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import torch
from nets import Branching, Convolutional, FixedBatchSize, NonDeterministic, Recurrent, Transformer

from runyard import Model, Run
from runyard.errors import OnnxExportException, ParityFailed
from runyard.onnx import export, report

run = Run.get_context()
workspace = run.experiment.workspace
results = {}
torch.manual_seed(0)
torch.set_num_threads(1)  # the networks are small, and other tests run at the same time


def export_and_record(name, model, inputs, **options):
    try:
        exported = export(model, inputs, register_as=f"net-{name}", **options)
        results[name] = {"id": exported.id, "parent": exported.parent_id, "sidecar": report(exported)}
    except ParityFailed as error:
        results[name] = {"refused": error.message, "hint": error.hint, "report": error.report}
    except OnnxExportException as error:
        results[name] = {"error": error.message, "hint": error.hint}
    print(name, *results[name], flush=True)


images = [torch.randn(4, 1, 8, 8) for _ in range(3)]
net = Convolutional()
export_and_record("cnn", net, images)
export_and_record("cnn-int8", net, images, quantize="int8", exporter="torchscript")
export_and_record("cnn-int8-strict", net, images, quantize="int8", exporter="torchscript", quantize_tolerance=1e-6)
export_and_record("lstm", Recurrent(), torch.randn(1, 5, 8))
export_and_record("lstm-traced", Recurrent(), torch.randn(3, 5, 8), exporter="torchscript", opset=17)
words = {"tokens": torch.randint(0, 50, (4, 7)), "weight": torch.rand(4, 16)}
export_and_record("transformer", Transformer(), words)
export_and_record("broken", Branching(), [torch.ones(2, 3), -torch.ones(2, 3)], exporter="torchscript")
export_and_record("broken-dynamo", Branching(), torch.ones(2, 3))
export_and_record("one-size", FixedBatchSize(), torch.randn(4, 3), exporter="torchscript")

Path("outputs").mkdir(exist_ok=True)
torch.save(net.state_dict(), "outputs/net.pt")
weights = run.register_model("net-weights", "outputs/net.pt", model_framework=Model.Framework.PYTORCH)
export_and_record("from-weights", Model(workspace, weights.name), images, build=Convolutional, exporter="torchscript")
export_and_record("weights-only", weights, images)
export_and_record("no-model", object(), images)
export_and_record("wrong-shape", net, torch.randn(4, 3))
export_and_record("non-deterministic", NonDeterministic(), torch.randn(4, 3))
exported = export(net, images, folder="outputs/exported", exporter="torchscript")
results["folder"] = {"files": sorted(path.name for path in exported.folder.iterdir())}

os.environ["KERAS_BACKEND"] = "torch"
import keras  # noqa: E402

a, b = keras.Input((4,), name="a"), keras.Input((4,), name="b")
export_and_record(
    "keras",
    keras.Model([a, b], [keras.layers.Dense(2)(a + b), a * b]),
    {"b": np.ones((3, 4), "f"), "a": np.eye(3, 4, dtype="f")},
)

Path("outputs/results.json").write_text(json.dumps(results))
