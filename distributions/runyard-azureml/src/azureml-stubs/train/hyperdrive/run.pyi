from runyard.sdk.experiment import Experiment as Experiment
from runyard.sdk.hyperdrive.run import HyperDriveRun as HyperDriveRun
from runyard.sdk.hyperdrive.runconfig import HyperDriveConfig as HyperDriveConfig
from runyard.sdk.hyperdrive.runconfig import PrimaryMetricGoal as PrimaryMetricGoal
from runyard.sdk.run import Run as Run
from runyard.sdk.workspace import Workspace as Workspace
