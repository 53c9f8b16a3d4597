from runyard.errors import ActivityFailedException as ActivityFailedException
from runyard.sdk.environment.environment import Environment as Environment
from runyard.sdk.run.offline_run import OfflineRun as OfflineRun
from runyard.sdk.run.run import Run as Run

_OfflineRun = OfflineRun
