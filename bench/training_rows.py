"""Training in a run compared with the bare script: PyTorch if it can be installed, else plain Python."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bench.rounds import measure_rounds
from bench.row import Goal, Row, Size
from bench.sandbox import Sandbox, script_config, wait_for
from runyard import Experiment, PyTorch
from runyard.errors import RunyardException

# Both do the same work for the same time; only in a run is every loss logged.
_LOOP = """
def measure(one_step, seconds, answer, warm_up=20):
    import os, time
    if "RUNYARD_RUN_ID" in os.environ:
        from runyard import Run
        log = Run.get_context().log
    else:
        log = lambda name, value: None
    for _ in range(warm_up):
        one_step()
    began, steps = time.perf_counter(), 0
    while (took := time.perf_counter() - began) < seconds:
        log("loss", one_step())
        steps += 1
    with open(answer, "w") as file:
        file.write(f"{steps / took!r} {sys.executable}")
"""
_TORCH = f"""\
import sys
import torch
from sklearn.datasets import load_digits
{_LOOP}
torch.manual_seed(0)
images, labels = load_digits(return_X_y=True)
x, y = torch.tensor(images / 16.0, dtype=torch.float32), torch.tensor(labels)
model = torch.nn.Sequential(torch.nn.Linear(64, 256), torch.nn.ReLU(), torch.nn.Linear(256, 10))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
loss_of = torch.nn.CrossEntropyLoss()

def one_step():
    batch = torch.randint(0, len(x), (64,))
    optimizer.zero_grad()
    loss = loss_of(model(x[batch]), y[batch])
    loss.backward()
    optimizer.step()
    return loss.item()

measure(one_step, float(sys.argv[1]), sys.argv[2])
"""
_PLAIN = f"""\
import sys
{_LOOP}
def one_step():
    total = 0.0
    for index in range(5_000):
        total += (index % 7) * 0.5
    return total

measure(one_step, float(sys.argv[1]), sys.argv[2])
"""


def throughput(sandbox: Sandbox, size: Size) -> Iterator[Row]:
    seconds = max(5 * size.scale, 0.2)
    result_file = sandbox.root / "training.answer"
    folder = sandbox.project("training", digits=_TORCH, plain=_PLAIN)
    experiment = sandbox.experiment("training")
    if size.downloads:
        config = PyTorch(
            str(folder),
            entry_script="digits.py",
            script_params={str(seconds): str(result_file)},
            compute_target="local",
            pip_packages=["scikit-learn"],
            use_gpu=False,
        )
        try:
            wait_for(experiment.submit(config))  # builds the environment
            python = result_file.read_text().split(" ", 1)[1]
            yield _compare(
                "PyTorch, a small network",
                experiment,
                config,
                [python, "digits.py"],
                folder,
                result_file,
                seconds,
                size,
            )
            return
        except RunyardException as error:
            print(f"    PyTorch is not available ({str(error).splitlines()[0]}); using plain Python instead")
    config = script_config(folder, "plain.py", seconds, result_file)
    yield _compare("plain Python", experiment, config, [sys.executable, "plain.py"], folder, result_file, seconds, size)


def _compare(
    title: str,
    experiment: Experiment,
    config: Any,
    bare: list[str],
    folder: Path,
    result_file: Path,
    seconds: float,
    size: Size,
) -> Row:
    def ours() -> float:
        wait_for(experiment.submit(config))
        return _steps_per_second(result_file)

    def bare_run() -> float:
        subprocess.run([*bare, str(seconds), str(result_file)], cwd=folder, check=True)
        return _steps_per_second(result_file)

    rounds = min(size.rounds, max(3, size.rounds // 3))  # each takes seconds
    times = measure_rounds({"bare": bare_run, "ours": ours}, rounds)
    return Row(
        f"training steps in a run, every loss logged ({title})",
        times["ours"],
        ("bare script", times["bare"]),
        Goal(0.98, relative=True, at_least=True),
        unit="/s",
    )


def _steps_per_second(result_file: Path) -> float:
    return float(result_file.read_text().split(" ", 1)[0])
