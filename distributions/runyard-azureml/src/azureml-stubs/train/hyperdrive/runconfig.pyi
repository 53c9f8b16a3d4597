from runyard.sdk.hyperdrive.runconfig import HyperDriveConfig as HyperDriveConfig
from runyard.sdk.hyperdrive.runconfig import HyperDriveRunConfig as HyperDriveRunConfig
from runyard.sdk.hyperdrive.runconfig import PrimaryMetricGoal as PrimaryMetricGoal
from runyard.sdk.run.run import Run as Run
from runyard.sdk.training.script_run_config import ScriptRunConfig as ScriptRunConfig
