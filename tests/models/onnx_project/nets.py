"""Small networks of common kinds, and some that a trace exports incorrectly."""

from __future__ import annotations

import torch
from torch import nn


class Convolutional(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Conv2d(1, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.Dropout(), nn.Flatten())
        self.head = nn.Linear(8 * 6 * 6, 10)

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        return self.head(self.layers(image))


class Recurrent(nn.Module):
    """The second output has the batch on its second axis."""

    def __init__(self) -> None:
        super().__init__()
        self.lstm = nn.LSTM(8, 16, num_layers=2, batch_first=True)
        self.head = nn.Linear(16, 3)

    def forward(self, series: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        steps, (hidden, _) = self.lstm(series)
        return self.head(steps[:, -1]), hidden


class Transformer(nn.Module):
    """A small transformer that is called with keyword arguments and returns a dict."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(50, 16)
        layer = nn.TransformerEncoderLayer(16, 4, 32, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.head = nn.Linear(16, 3)

    def forward(self, tokens: torch.Tensor, weight: torch.Tensor) -> dict[str, torch.Tensor]:
        pooled = self.encoder(self.embedding(tokens)).mean(1) * weight
        return {"logits": self.head(pooled), "pooled": pooled}


class Branching(nn.Module):
    """Branches on the input values; a trace contains only one branch."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * 2 if x.sum() > 0 else x * 3


class FixedBatchSize(nn.Module):
    """A trace of it has a fixed batch size."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        rows = int(x.shape[0])
        return x.reshape(-1)[: rows * 3].reshape(rows, 3).cumsum(0)


class NonDeterministic(nn.Module):
    """Returns different outputs on each call, even in evaluation mode."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return nn.functional.dropout(x, training=True)
