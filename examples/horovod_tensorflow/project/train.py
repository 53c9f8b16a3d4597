"""Digits with TensorFlow and Horovod, using a gradient tape that averages over all ranks."""

import argparse
from pathlib import Path

import horovod.tensorflow as hvd
import numpy as np
import tensorflow as tf
from azureml.core import Run

parser = argparse.ArgumentParser()
parser.add_argument("--data-dir", required=True, help="where digits.npz is")
parser.add_argument("--epochs", type=int, default=5)
parser.add_argument("--batch-size", type=int, default=64, help="over all ranks together")
parser.add_argument("--learning-rate", type=float, default=0.5)
args = parser.parse_args()

hvd.init()
run = Run.get_context()
order = np.random.RandomState(0)  # the same order of batches on all ranks
data = np.load(Path(args.data_dir) / "digits.npz")
x, y = data["images"], data["labels"]
weights = tf.Variable(tf.zeros([64, 10]))
bias = tf.Variable(tf.zeros([10]))


def loss_of(inputs: np.ndarray, targets: np.ndarray) -> tf.Tensor:
    logits = tf.matmul(inputs, weights) + bias
    return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=targets, logits=logits))


hvd.broadcast_variables([weights, bias], root_rank=0)
for _epoch in range(args.epochs):
    shuffled = order.permutation(len(x))
    for start in range(0, len(x) - args.batch_size + 1, args.batch_size):
        batch = shuffled[start : start + args.batch_size]
        share = np.split(batch, hvd.size())[hvd.rank()]
        with tf.GradientTape() as plain:
            loss = loss_of(x[share], y[share])
        tape = hvd.DistributedGradientTape(plain)
        for variable, gradient in zip((weights, bias), tape.gradient(loss, [weights, bias])):
            variable.assign_sub(args.learning_rate * gradient)
    whole = float(loss_of(x, y))
    run.log(f"loss_of_rank_{hvd.rank()}", whole)
    if hvd.rank() == 0:
        run.log("loss", whole)
        print(f"loss {whole:.6f}")

if hvd.rank() == 0:
    predicted = np.argmax(x @ weights.numpy() + bias.numpy(), axis=1)
    run.log("accuracy", float((predicted == y).mean()))
    run.log("ranks", hvd.size())
    np.savez("outputs/model.npz", weights=weights.numpy(), bias=bias.numpy())
