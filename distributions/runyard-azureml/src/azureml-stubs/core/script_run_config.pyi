from runyard.sdk.run_configuration import RunConfiguration as RunConfiguration
from runyard.sdk.script_run_config import ScriptRunConfig as ScriptRunConfig
