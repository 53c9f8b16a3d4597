"""Loggers for Lightning, Accelerate and Transformers, with the real libraries."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from runyard import Experiment, Gloo, PyTorch, Run, Workspace

pytestmark = pytest.mark.real

COMMON = """
import json, os, sys
from pathlib import Path
import torch
from torch.utils.data import DataLoader, Dataset

class Lines(Dataset):
    def __len__(self): return 32
    def __getitem__(self, index):
        x = torch.tensor([index / 32.0])
        return {"x": x, "labels": 2 * x}

def fit_lightning(L, **settings):
    from runyard.integrations.lightning import RunyardLogger

    class Net(L.LightningModule):
        def __init__(self):
            super().__init__()
            self.save_hyperparameters({"width": 1, "optimizer": {"lr": 0.1}})
            self.layer = torch.nn.Linear(1, 1)
        def training_step(self, batch, index):
            loss = torch.nn.functional.mse_loss(self.layer(batch["x"]), batch["labels"])
            self.log("net_loss", loss, on_step=True)
            return loss
        def configure_optimizers(self):
            return torch.optim.SGD(self.parameters(), lr=0.1)

    logger = RunyardLogger(**settings)
    assert isinstance(logger, L.pytorch.loggers.Logger if hasattr(L, "pytorch") else L.loggers.Logger)
    trainer = L.Trainer(
        max_epochs=2, logger=logger, log_every_n_steps=1, enable_progress_bar=False, enable_model_summary=False,
        accelerator="cpu", devices=int(os.environ.get("WORLD_SIZE", "1")),
    )
    trainer.fit(Net(), DataLoader(Lines(), batch_size=4))
    return logger

def train_transformers(folder, callbacks=(), **settings):
    from transformers import Trainer, TrainingArguments

    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = torch.nn.Linear(1, 1)
        def forward(self, x, labels):
            out = self.layer(x)
            return {"loss": torch.nn.functional.mse_loss(out, labels), "logits": out}

    arguments = TrainingArguments(
        folder, num_train_epochs=1, per_device_train_batch_size=4, logging_steps=1, save_steps=2, use_cpu=True,
        disable_tqdm=True, **settings,
    )
    Trainer(model=Net(), args=arguments, train_dataset=Lines(), callbacks=list(callbacks)).train()
"""

RANKS = (
    COMMON
    + """
from accelerate import Accelerator
import runyard.integrations.accelerate
accelerator = Accelerator(cpu=True, log_with="runyard")
accelerator.init_trackers("digits", config={"depth": 2, "net": {"units": 8}})
for step in range(3):
    accelerator.log({"accuracy": step / 2, "on_tensor": torch.tensor(1.5)}, step=step)
if accelerator.is_main_process:
    Path("notes.txt").write_text("seen")
    accelerator.get_tracker("runyard").log_artifact("notes.txt", "files")
accelerator.end_training()

import runyard.integrations.transformers
train_transformers("outputs/checkpoints", report_to="runyard")

import lightning  # the last one: it deletes WORLD_SIZE at its end
fit_lightning(lightning)
"""
)

OUTSIDE = (
    """
import os, subprocess, sys

if "outside" not in sys.argv:  # before torch is imported
    inside = ("RUNYARD_RUN_ID", "RUNYARD_RUN_FOLDER", "AZUREML_ARM_PROJECT_NAME")
    environment = {name: value for name, value in os.environ.items() if name not in inside}
    subprocess.run([sys.executable, __file__, "outside"], env=environment, check=True)
    sys.exit()
"""
    + COMMON
    + """
import pytorch_lightning
logger = fit_lightning(pytorch_lightning, experiment="by-hand", name="first", log_checkpoints=True)

from accelerate import Accelerator
from runyard.integrations.accelerate import RunyardTracker
tracker = RunyardTracker("by-hand")
accelerator = Accelerator(cpu=True, log_with=tracker)
accelerator.init_trackers("digits", config={"depth": 2})
accelerator.log({"accuracy": 0.5}, step=7)
accelerator.end_training()
assert tracker.tracker.get_status() == "Completed"

from runyard.integrations.transformers import RunyardCallback
callback = RunyardCallback("by-hand", log_checkpoints="all")
train_transformers("here", [callback], report_to=[])
ids = [logger.experiment.id, tracker.tracker.id, callback.run.id]
Path("outputs/ids.json").write_text(json.dumps(ids))
"""
)


@pytest.fixture
def train(experiment: Experiment, project: Callable[..., Path]) -> Callable[..., Run]:
    def start(script: str, **settings: object) -> Run:
        estimator = PyTorch(
            source_directory=str(project(train=script)),
            entry_script="train.py",
            compute_target="local",
            framework_version="2.13.0",
            pip_packages=["lightning", "pytorch_lightning", "transformers", "accelerate", "mlflow-skinny"],
            environment_variables={"HF_HUB_OFFLINE": "1"},
            **settings,
        )
        run = experiment.submit(estimator)
        run.wait_for_completion()
        return run

    return start


@pytest.mark.timeout(900)
def test_the_loggers_of_all_frameworks_log_into_the_job_from_its_first_rank(train: Callable[..., Run]) -> None:
    run = train(RANKS, process_count_per_node=2, distributed_training=Gloo())
    metrics = run.get_metrics()
    assert len(metrics["net_loss"]) == 8  # 2 epochs of 32 / (4 * 2 ranks) batches, logged by one of the ranks
    assert metrics["accuracy"] == [0.0, 0.5, 1.0]
    assert metrics["on_tensor"] == [1.5] * 3
    assert len(metrics["loss"]) == 4
    params = run.get_params()
    assert (params["width"], params["optimizer/lr"]) == ("1", "0.1")
    assert (params["depth"], params["net/units"]) == ("2", "8")
    assert params["num_train_epochs"] == "1"
    files = run.get_file_names()
    assert "files/notes.txt" in files
    assert f"outputs/{run.experiment.name}/{run.id}/checkpoints/epoch=1-step=8.ckpt" in files
    assert "outputs/checkpoints/checkpoint-4/model.safetensors" in files
    assert list(run.get_children()) == []


@pytest.mark.timeout(900)
def test_outside_of_a_job_each_logger_opens_an_interactive_run(
    train: Callable[..., Run], workspace: Workspace, tmp_path: Path
) -> None:
    job = train(OUTSIDE)
    assert job.get_metrics() == {}
    job.download_file("outputs/ids.json", str(tmp_path / "ids.json"))
    runs = [Run.get(workspace, run_id) for run_id in json.loads((tmp_path / "ids.json").read_text())]
    lightning, accelerate, transformers = runs
    assert {(run.experiment.name, run.status) for run in runs} == {("by-hand", "Completed")}
    assert lightning.name == "first"
    assert len(lightning.get_metrics()["net_loss"]) == 16
    assert lightning.get_params()["width"] == "1"
    assert lightning.get_tags()["best_checkpoint"] == "epoch=1-step=16.ckpt"
    assert lightning.get_file_names() == ["checkpoints/epoch=1-step=16.ckpt"]
    assert (accelerate.get_metrics(), accelerate.get_params()) == ({"accuracy": 0.5}, {"depth": "2"})
    assert len(transformers.get_metrics()["loss"]) == 8
    assert {name.split("/")[1] for name in transformers.get_file_names()} == {
        f"checkpoint-{step}" for step in (2, 4, 6, 8)
    }
