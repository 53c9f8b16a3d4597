from runyard.sdk.core.experiment import Experiment as Experiment
from runyard.sdk.core.workspace import Workspace as Workspace
from runyard.sdk.hyperdrive.run import HyperDriveRun as HyperDriveRun
from runyard.sdk.hyperdrive.runconfig import HyperDriveConfig as HyperDriveConfig
from runyard.sdk.hyperdrive.runconfig import PrimaryMetricGoal as PrimaryMetricGoal
from runyard.sdk.run.run import Run as Run
