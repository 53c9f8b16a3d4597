"""Classifies handwritten digits with two hidden layers, with Keras on TensorFlow."""

import argparse
from pathlib import Path

import numpy as np
import tensorflow as tf
from azureml.core import Run
from sklearn.model_selection import train_test_split

parser = argparse.ArgumentParser()
parser.add_argument("--data-folder", required=True, help="where digits.npz is")
parser.add_argument("--batch-size", type=int, default=50)
parser.add_argument("--first-layer-neurons", type=int, default=64)
parser.add_argument("--second-layer-neurons", type=int, default=32)
parser.add_argument("--learning-rate", type=float, default=0.01)
parser.add_argument("--epochs", type=int, default=6)
args = parser.parse_args()

run = Run.get_context()
run.log("lr", args.learning_rate)

data = np.load(Path(args.data_folder) / "digits.npz")
x, x_test, y, y_test = train_test_split(data["images"], data["labels"], test_size=0.25, random_state=0)

tf.keras.utils.set_random_seed(0)
model = tf.keras.Sequential(
    [
        tf.keras.Input((64,)),
        tf.keras.layers.Dense(args.first_layer_neurons, activation="relu"),
        tf.keras.layers.Dense(args.second_layer_neurons, activation="relu"),
        tf.keras.layers.Dense(10, activation="softmax"),
    ]
)
optimizer = tf.keras.optimizers.Adam(args.learning_rate)
model.compile(optimizer=optimizer, loss="sparse_categorical_crossentropy", metrics=["accuracy"])


class Logged(tf.keras.callbacks.Callback):
    def on_epoch_end(self, epoch, logs=None):
        run.log("training_acc", logs["accuracy"])
        run.log("validation_acc", logs["val_accuracy"])


model.fit(
    x,
    y,
    validation_data=(x_test, y_test),
    batch_size=args.batch_size,
    epochs=args.epochs,
    callbacks=[Logged()],
    verbose=2,
)
_, accuracy = model.evaluate(x_test, y_test, verbose=0)
run.log("final_acc", accuracy)

Path("outputs/model").mkdir(parents=True, exist_ok=True)
model.save("outputs/model/digits.keras")
