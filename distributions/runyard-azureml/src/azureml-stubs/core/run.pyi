from runyard.errors import ActivityFailedException as ActivityFailedException
from runyard.sdk.environment import Environment as Environment
from runyard.sdk.run import Run as Run
