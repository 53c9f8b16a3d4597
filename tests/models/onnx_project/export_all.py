"""Exports each net in a real environment, and writes down what came of it."""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import torch
from nets import Attending, Branching, Convolutional, OfOneSize, Recurrent, Restless

from runyard import Model, Run
from runyard.errors import OnnxExportException, ParityFailed
from runyard.onnx import export, report

run = Run.get_context()
workspace = run.experiment.workspace
found = {}
torch.manual_seed(0)
torch.set_num_threads(1)  # small nets on a machine that has other things to do


def attempt(name, model, inputs, **how):
    try:
        made = export(model, inputs, register_as=f"net-{name}", **how)
        found[name] = {"id": made.id, "parent": made.parent_id, "sidecar": report(made)}
    except ParityFailed as error:
        found[name] = {"refused": error.message, "hint": error.hint, "report": error.report}
    except OnnxExportException as error:
        found[name] = {"error": error.message, "hint": error.hint}
    print(name, *found[name], flush=True)


images = [torch.randn(4, 1, 8, 8) for _ in range(3)]
net = Convolutional()
attempt("cnn", net, images)
attempt("cnn-int8", net, images, quantize="int8", exporter="torchscript")
attempt("cnn-int8-strict", net, images, quantize="int8", exporter="torchscript", quantize_tolerance=1e-6)
attempt("lstm", Recurrent(), torch.randn(1, 5, 8))
attempt("lstm-traced", Recurrent(), torch.randn(3, 5, 8), exporter="torchscript", opset=17)
words = {"tokens": torch.randint(0, 50, (4, 7)), "weight": torch.rand(4, 16)}
attempt("transformer", Attending(), words)
attempt("broken", Branching(), [torch.ones(2, 3), -torch.ones(2, 3)], exporter="torchscript")
attempt("broken-dynamo", Branching(), torch.ones(2, 3))
attempt("one-size", OfOneSize(), torch.randn(4, 3), exporter="torchscript")

Path("outputs").mkdir(exist_ok=True)
torch.save(net.state_dict(), "outputs/net.pt")
weights = run.register_model("net-weights", "outputs/net.pt", model_framework=Model.Framework.PYTORCH)
attempt("of-weights", Model(workspace, weights.name), images, build=Convolutional, exporter="torchscript")
attempt("of-weights-alone", weights, images)
attempt("no-model", object(), images)
attempt("wrong-shape", net, torch.randn(4, 3))
attempt("restless", Restless(), torch.randn(4, 3))
kept = export(net, images, folder="outputs/kept", exporter="torchscript")
found["kept"] = {"files": sorted(path.name for path in kept.folder.iterdir())}

os.environ["KERAS_BACKEND"] = "torch"
import keras  # noqa: E402

a, b = keras.Input((4,), name="a"), keras.Input((4,), name="b")
attempt(
    "keras",
    keras.Model([a, b], [keras.layers.Dense(2)(a + b), a * b]),
    {"b": np.ones((3, 4), "f"), "a": np.eye(3, 4, dtype="f")},
)

Path("outputs/found.json").write_text(json.dumps(found))
