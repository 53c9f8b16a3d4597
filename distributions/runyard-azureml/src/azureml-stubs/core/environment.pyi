from runyard.sdk.conda_dependencies import CondaDependencies as CondaDependencies
from runyard.sdk.environment import ContainerRegistry as ContainerRegistry
from runyard.sdk.environment import DockerSection as DockerSection
from runyard.sdk.environment import Environment as Environment
from runyard.sdk.environment import PythonSection as PythonSection
from runyard.sdk.environment import SparkSection as SparkSection
from runyard.sdk.run_configuration import DEFAULT_CPU_IMAGE as DEFAULT_CPU_IMAGE
from runyard.sdk.run_configuration import DEFAULT_GPU_IMAGE as DEFAULT_GPU_IMAGE
