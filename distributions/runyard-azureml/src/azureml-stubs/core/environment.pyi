from runyard.sdk.environment.conda_dependencies import CondaDependencies as CondaDependencies
from runyard.sdk.environment.environment import Environment as Environment
from runyard.sdk.environment.sections import ContainerRegistry as ContainerRegistry
from runyard.sdk.environment.sections import DockerSection as DockerSection
from runyard.sdk.environment.sections import PythonSection as PythonSection
from runyard.sdk.environment.sections import SparkSection as SparkSection
from runyard.sdk.training.run_configuration import DEFAULT_CPU_IMAGE as DEFAULT_CPU_IMAGE
from runyard.sdk.training.run_configuration import DEFAULT_GPU_IMAGE as DEFAULT_GPU_IMAGE
