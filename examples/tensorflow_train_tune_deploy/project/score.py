"""The web service: `init` once, then `run` for every request."""

import json
from pathlib import Path

import numpy as np
import tensorflow as tf
from azureml.core.model import Model


def init():
    global model
    model = tf.keras.models.load_model(Path(Model.get_model_path("tf-digits")) / "digits.keras")


def run(raw_data):
    images = np.array(json.loads(raw_data)["data"], dtype="float32")
    return model.predict_on_batch(images).argmax(axis=1).tolist()
