"""Digits with a parameter server and workers, configured manually from TF_CONFIG, as in TensorFlow 1 scripts.

Each worker computes gradients on its own batches and applies them to the variables, which live on the server.
"""

import argparse
import json
import os
from pathlib import Path

import numpy as np
import tensorflow as tf
from azureml.core import Run

tf1 = tf.compat.v1
tf1.disable_v2_behavior()

parser = argparse.ArgumentParser()
parser.add_argument("--data-dir", required=True, help="where digits.npz is")
parser.add_argument("--steps", type=int, default=300, help="of all workers together")
parser.add_argument("--batch-size", type=int, default=64)
parser.add_argument("--learning-rate", type=float, default=0.5)
args = parser.parse_args()

config = json.loads(os.environ["TF_CONFIG"])
task, index = config["task"]["type"], config["task"]["index"]
cluster = tf1.train.ClusterSpec(config["cluster"])
server = tf1.train.Server(cluster, job_name=task, task_index=index)
if task == "ps":
    server.join()  # never returns: the run ends with its workers

run = Run.get_context()
data = np.load(Path(args.data_dir) / "digits.npz")
x, y = data["images"], data["labels"]
is_first = index == 0

with tf1.device(tf1.train.replica_device_setter(cluster=cluster, worker_device=f"/job:worker/task:{index}")):
    inputs = tf1.placeholder(tf.float32, [None, 64])
    targets = tf1.placeholder(tf.int64, [None])
    weights = tf1.get_variable("weights", [64, 10], initializer=tf1.zeros_initializer())
    bias = tf1.get_variable("bias", [10], initializer=tf1.zeros_initializer())
    logits = tf.matmul(inputs, weights) + bias
    loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=targets, logits=logits))
    accuracy = tf.reduce_mean(tf.cast(tf.equal(tf.argmax(logits, 1), targets), tf.float32))
    step = tf1.train.get_or_create_global_step()
    train = tf1.train.GradientDescentOptimizer(args.learning_rate).minimize(loss, global_step=step)

batches = np.random.RandomState(index)
hooks = [tf1.train.StopAtStepHook(last_step=args.steps)]
done = 0
# a worker connects to the servers and to itself: else one that starts late would wait forever for one that has ended
mine = tf1.ConfigProto(device_filters=["/job:ps", f"/job:worker/task:{index}"])
with tf1.train.MonitoredTrainingSession(server.target, is_chief=is_first, hooks=hooks, config=mine) as session:
    while not session.should_stop():
        chosen = batches.randint(0, len(x), args.batch_size)
        _, value, right, at = session.run([train, loss, accuracy, step], {inputs: x[chosen], targets: y[chosen]})
        done += 1
        if done % 25 == 0:
            print(f"worker {index}: step {at}, loss {value:.4f}")
            run.log("loss", float(value))
        last = float(right)
print(f"worker {index} made {done} of {args.steps} steps")
run.log("steps", done)
run.log("accuracy", last)
