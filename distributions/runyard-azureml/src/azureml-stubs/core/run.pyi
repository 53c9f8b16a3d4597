from runyard.errors import ActivityFailedException as ActivityFailedException
from runyard.sdk.environment import Environment as Environment
from runyard.sdk.offline import OfflineRun as OfflineRun
from runyard.sdk.run import Run as Run

_OfflineRun = OfflineRun
