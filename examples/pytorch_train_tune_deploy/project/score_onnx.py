"""The same service with ONNX Runtime, without PyTorch."""

import json

import numpy as np
import onnxruntime
from azureml.core.model import Model


def init():
    global session
    session = onnxruntime.InferenceSession(Model.get_model_path("digits-onnx"))


def run(raw_data):
    images = np.array(json.loads(raw_data)["data"], dtype="float32")
    (scores,) = session.run(["scores"], {"images": images})
    return {"label": scores.argmax(axis=1).tolist()}
