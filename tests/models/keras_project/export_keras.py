"""Exports a Keras model with the TensorFlow backend."""

from __future__ import annotations

import json
from pathlib import Path

import keras
import numpy as np
import tensorflow as tf

from runyard.errors import OnnxExportException
from runyard.onnx import export, report

images = [np.random.default_rng(seed).random((4, 8, 8, 1), "f") for seed in range(2)]
layers = [keras.layers.Conv2D(4, 3, activation="relu"), keras.layers.BatchNormalization(), keras.layers.Flatten()]
net = keras.Sequential([keras.layers.Input((8, 8, 1)), *layers, keras.layers.Dense(3)])
net.save("net.keras")
results = {"net": report(export(net, images, register_as="keras-net"))}
results["file"] = report(export("net.keras", images, register_as="keras-file"))
try:
    export(tf.Module(), images, register_as="keras-bare")
except OnnxExportException as error:
    results["bare"] = error.message

Path("outputs").mkdir(exist_ok=True)
Path("outputs/results.json").write_text(json.dumps(results))
