"""Digits with numpy and mpi4py: softmax regression with gradients averaged by an allreduce."""

import argparse

import numpy as np
from mpi4py import MPI
from sklearn.datasets import load_digits

from runyard import Run

parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int, default=5)
parser.add_argument("--batch-size", type=int, default=64, help="over all ranks together")
parser.add_argument("--lr", type=float, default=0.5)
args = parser.parse_args()

world = MPI.COMM_WORLD
run = Run.get_context()
order = np.random.RandomState(0)
images, labels = load_digits(return_X_y=True)
x = np.hstack([images / 16.0, np.ones((len(images), 1))])
y = np.eye(10)[labels]
weights = np.zeros((65, 10))


def probabilities(inputs: np.ndarray) -> np.ndarray:
    raised = np.exp(inputs @ weights - (inputs @ weights).max(axis=1, keepdims=True))
    return raised / raised.sum(axis=1, keepdims=True)


for _epoch in range(args.epochs):
    shuffled = order.permutation(len(x))
    for start in range(0, len(x) - args.batch_size + 1, args.batch_size):
        share = np.split(shuffled[start : start + args.batch_size], world.size)[world.rank]
        gradient = x[share].T @ (probabilities(x[share]) - y[share]) / len(share)
        weights -= args.lr * world.allreduce(gradient) / world.size
    loss = float(-np.log((probabilities(x) * y).sum(axis=1)).mean())
    run.log(f"loss_of_rank_{world.rank}", loss)
    if world.rank == 0:
        run.log("loss", loss)
        print(f"loss {loss:.6f}")

if world.rank == 0:
    run.log("accuracy", float((probabilities(x).argmax(axis=1) == labels).mean()))
    run.log("ranks", world.size)
    np.save("outputs/weights.npy", weights)
