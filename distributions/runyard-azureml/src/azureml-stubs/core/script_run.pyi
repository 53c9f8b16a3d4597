from runyard.sdk.run.run import Run as Run
from runyard.sdk.run.script_run import ScriptRun as ScriptRun
from runyard.sdk.training.run_configuration import RunConfiguration as RunConfiguration
