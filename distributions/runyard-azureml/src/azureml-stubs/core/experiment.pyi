from runyard.sdk.experiment import Experiment as Experiment
from runyard.sdk.run import Run as Run
from runyard.sdk.workspace import Workspace as Workspace
