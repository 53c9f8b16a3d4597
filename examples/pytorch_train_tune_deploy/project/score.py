"""The web service: `init` once, then `run` for every request."""

import json
import os
from pathlib import Path

import torch
from net import Net


def init():
    global net
    net = Net()
    net.load_state_dict(torch.load(Path(os.environ["AZUREML_MODEL_DIR"]) / "model.pt"))
    net.eval()


def run(raw_data):
    images = torch.tensor(json.loads(raw_data)["data"])
    with torch.no_grad():
        probabilities = torch.softmax(net(images), dim=1)
    return {"label": probabilities.argmax(1).tolist(), "probability": probabilities.max(1).values.tolist()}
