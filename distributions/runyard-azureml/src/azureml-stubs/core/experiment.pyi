from runyard.sdk.core.experiment import Experiment as Experiment
from runyard.sdk.core.workspace import Workspace as Workspace
from runyard.sdk.run.run import Run as Run
