"""MLflow's stages and those of the yard."""

from __future__ import annotations

from runyard.server.mlflow.errors import INVALID, MlflowError

_TO_YARD = {"None": "none", "Staging": "candidate", "Production": "approved", "Archived": "archived"}
_TO_MLFLOW = {**{stage: name for name, stage in _TO_YARD.items()}, "rejected": "Archived"}
ACTIVE = ("Staging", "Production")


def to_mlflow(stage: str) -> str:
    """Convert a stage of the yard. MLflow has no stage for rejected versions: they count as archived."""
    return _TO_MLFLOW[stage]


def to_yard(stage: str) -> str:
    return _TO_YARD[canonical(stage)]


def canonical(stage: str) -> str:
    """Return MLflow's spelling of a stage, which clients may write in lower case."""
    names = {name.lower(): name for name in _TO_YARD}
    if stage.lower() not in names:
        raise MlflowError(INVALID, f"Invalid Model Version stage: {stage}. Value must be one of {', '.join(_TO_YARD)}.")
    return names[stage.lower()]
