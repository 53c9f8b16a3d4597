from runyard.sdk.training.run_configuration import RunConfiguration as RunConfiguration
from runyard.sdk.training.script_run_config import ScriptRunConfig as ScriptRunConfig
