"""The network, for training and for the service."""

import torch


class Net(torch.nn.Sequential):
    def __init__(self):
        super().__init__(
            torch.nn.Unflatten(1, (1, 8, 8)),
            torch.nn.Conv2d(1, 16, kernel_size=3, padding=1),
            torch.nn.ReLU(),
            torch.nn.MaxPool2d(2),
            torch.nn.Flatten(),
            torch.nn.Linear(16 * 4 * 4, 10),
        )
