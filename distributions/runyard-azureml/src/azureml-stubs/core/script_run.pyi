from runyard.sdk.run import Run as Run
from runyard.sdk.run_configuration import RunConfiguration as RunConfiguration
from runyard.sdk.script_run import ScriptRun as ScriptRun
