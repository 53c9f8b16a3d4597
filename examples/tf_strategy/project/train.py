"""Digits with TensorFlow 2's ParameterServerStrategy: the chief coordinates workers and servers."""

import argparse
import json
import os

import numpy as np
import tensorflow as tf
from sklearn.datasets import load_digits

from runyard import Run

parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, default=200)
parser.add_argument("--batch-size", type=int, default=64)
parser.add_argument("--lr", type=float, default=0.5)
args = parser.parse_args()

resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
task = json.loads(os.environ["TF_CONFIG"])["task"]
if task["type"] in ("worker", "ps"):
    server = tf.distribute.Server(
        resolver.cluster_spec(), job_name=task["type"], task_index=task["index"], protocol="grpc"
    )
    server.join()  # until the chief has finished and the run ends

run = Run.get_context()
images, labels = load_digits(return_X_y=True)
x, y = (images / 16.0).astype("float32"), labels.astype("int64")
strategy = tf.distribute.ParameterServerStrategy(resolver)
coordinator = tf.distribute.coordinator.ClusterCoordinator(strategy)
with strategy.scope():
    weights = tf.Variable(tf.zeros([64, 10]))
    bias = tf.Variable(tf.zeros([10]))


@tf.function
def step(inputs: tf.Tensor, targets: tf.Tensor) -> tf.Tensor:
    with tf.GradientTape() as tape:
        logits = tf.matmul(inputs, weights) + bias
        loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=targets, logits=logits))
    for variable, gradient in zip((weights, bias), tape.gradient(loss, [weights, bias])):
        variable.assign_sub(args.lr * gradient)
    return loss


batches = np.random.RandomState(0)
losses = []
for _ in range(args.steps):
    chosen = batches.randint(0, len(x), args.batch_size)
    losses.append(coordinator.schedule(step, args=(tf.constant(x[chosen]), tf.constant(y[chosen]))))
coordinator.join()
for loss in losses[::20]:
    run.log("loss", float(loss.fetch()))
predicted = np.argmax(x @ weights.numpy() + bias.numpy(), axis=1)
accuracy = float((predicted == y).mean())
run.log("accuracy", accuracy)
print(f"accuracy {accuracy:.4f} after {args.steps} steps")
