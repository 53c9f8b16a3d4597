"""Libraries that log with MLflow: scikit-learn's autolog, Lightning's logger, the Trainer of Transformers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import mlflow
import pytest
from mlflow import MlflowClient

from runyard import Estimator, Experiment, PyTorch

SKLEARN = """
import mlflow
mlflow.autolog()
from sklearn.datasets import load_iris
from sklearn.linear_model import LogisticRegression
x, y = load_iris(return_X_y=True, as_frame=True)
model = LogisticRegression(max_iter=200, C=0.5).fit(x, y)
print("score", model.score(x, y))
"""

TORCH = """
import torch
from torch.utils.data import DataLoader, Dataset

class Lines(Dataset):
    def __len__(self): return 32
    def __getitem__(self, index):
        x = torch.tensor([index / 32.0])
        return {"x": x, "labels": 2 * x}

def lightning_logs():
    import lightning as L
    from lightning.pytorch.loggers import MLFlowLogger

    class Net(L.LightningModule):
        def __init__(self):
            super().__init__()
            self.save_hyperparameters({"width": 1})
            self.layer = torch.nn.Linear(1, 1)
        def training_step(self, batch, index):
            loss = torch.nn.functional.mse_loss(self.layer(batch["x"]), batch["labels"])
            self.log("net_loss", loss, on_step=True)
            return loss
        def configure_optimizers(self):
            return torch.optim.SGD(self.parameters(), lr=0.1)

    import os
    logger = MLFlowLogger(
        experiment_name=os.environ["MLFLOW_EXPERIMENT_NAME"],
        tracking_uri=os.environ["MLFLOW_TRACKING_URI"],
        run_id=os.environ["MLFLOW_RUN_ID"],
    )
    trainer = L.Trainer(
        max_epochs=2, logger=logger, log_every_n_steps=1, enable_progress_bar=False, enable_model_summary=False,
        accelerator="cpu", enable_checkpointing=False,
    )
    trainer.fit(Net(), DataLoader(Lines(), batch_size=8))

def transformers_logs():
    from transformers import Trainer, TrainingArguments

    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = torch.nn.Linear(1, 1)
        def forward(self, x, labels):
            out = self.layer(x)
            return {"loss": torch.nn.functional.mse_loss(out, labels), "logits": out}

    arguments = TrainingArguments(
        "here", num_train_epochs=1, per_device_train_batch_size=8, logging_steps=1, report_to=["mlflow"],
        save_strategy="no", use_cpu=True, disable_tqdm=True,
    )
    Trainer(model=Net(), args=arguments, train_dataset=Lines()).train()

lightning_logs()
transformers_logs()
"""


@pytest.mark.real
def test_autolog_of_scikit_learn_logs_into_the_job(
    experiment: Experiment, project: Callable[..., Path], client: MlflowClient, tmp_path: Path
) -> None:
    estimator = Estimator(
        source_directory=str(project(train=SKLEARN)),
        entry_script="train.py",
        compute_target="local",
        pip_packages=["mlflow", "scikit-learn"],
        environment_variables={"MLFLOW_DISABLE_TELEMETRY": "true"},
    )
    run = experiment.submit(estimator)
    run.wait_for_completion()
    mlflow_run = client.get_run(run.id)
    assert mlflow_run.data.params["C"] == "0.5"
    assert mlflow_run.data.metrics["training_score"] == pytest.approx(0.97, abs=0.03)
    assert mlflow_run.inputs.dataset_inputs[0].dataset.name == "dataset"
    (model,) = client.search_logged_models([experiment.name])
    assert model.status.value == "READY"
    assert f"models/{model.model_id}/MLmodel" in run.get_file_names()
    folder = mlflow.artifacts.download_artifacts(model.artifact_location, dst_path=str(tmp_path))
    assert Path(folder, "model.pkl").stat().st_size > 100
    assert len(client.search_runs([experiment.name], "metrics.training_score > 0.9")) == 1


@pytest.mark.real
@pytest.mark.timeout(900)
def test_lightning_and_transformers_log_into_the_job(
    experiment: Experiment, project: Callable[..., Path], client: MlflowClient
) -> None:
    estimator = PyTorch(
        source_directory=str(project(train=TORCH)),
        entry_script="train.py",
        compute_target="local",
        framework_version="2.13.0",
        pip_packages=["lightning", "pytorch_lightning", "transformers", "accelerate", "mlflow-skinny"],
        environment_variables={"MLFLOW_DISABLE_TELEMETRY": "true", "HF_HUB_OFFLINE": "1"},
    )
    run = experiment.submit(estimator)
    run.wait_for_completion()
    mlflow_run = client.get_run(run.id)
    assert mlflow_run.data.params["width"] == "1"
    lightning = client.get_metric_history(run.id, "net_loss")
    assert [metric.step for metric in lightning] == list(range(8))
    assert all(metric.value > 0 for metric in lightning)
    transformers = client.get_metric_history(run.id, "loss")
    assert [metric.step for metric in transformers] == [1, 2, 3, 4]
    assert mlflow_run.data.params["num_train_epochs"] == "1"
    assert len(client.search_runs([experiment.name])) == 1
