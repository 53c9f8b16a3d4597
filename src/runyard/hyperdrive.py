"""The public names of sweeps: HyperDriveConfig, samplings, policies and parameter expressions."""

from __future__ import annotations

from runyard.errors import HyperDriveConfigException, HyperDriveException
from runyard.sdk.hyperdrive.parameter_expressions import (
    choice,
    lognormal,
    loguniform,
    normal,
    qlognormal,
    qloguniform,
    qnormal,
    quniform,
    randint,
    uniform,
)
from runyard.sdk.hyperdrive.policy import (
    BanditPolicy,
    EarlyTerminationPolicy,
    HyperbandPolicy,
    MedianStoppingPolicy,
    NoTerminationPolicy,
    TruncationSelectionPolicy,
)
from runyard.sdk.hyperdrive.run import HyperDriveRun
from runyard.sdk.hyperdrive.runconfig import HyperDriveConfig, HyperDriveRunConfig, PrimaryMetricGoal
from runyard.sdk.hyperdrive.sampling import (
    BayesianParameterSampling,
    GridParameterSampling,
    HyperParameterSampling,
    PopulationParameterSampling,
    RandomParameterSampling,
    SobolParameterSampling,
)

__all__ = [
    "BanditPolicy",
    "BayesianParameterSampling",
    "EarlyTerminationPolicy",
    "GridParameterSampling",
    "HyperDriveConfig",
    "HyperDriveConfigException",
    "HyperDriveException",
    "HyperDriveRun",
    "HyperDriveRunConfig",
    "HyperParameterSampling",
    "HyperbandPolicy",
    "MedianStoppingPolicy",
    "NoTerminationPolicy",
    "PopulationParameterSampling",
    "PrimaryMetricGoal",
    "RandomParameterSampling",
    "SobolParameterSampling",
    "TruncationSelectionPolicy",
    "choice",
    "lognormal",
    "loguniform",
    "normal",
    "qlognormal",
    "qloguniform",
    "qnormal",
    "quniform",
    "randint",
    "uniform",
]
