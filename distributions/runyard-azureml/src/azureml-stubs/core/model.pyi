from runyard.sdk.dataset import Dataset as Dataset
from runyard.sdk.environment import Environment as Environment
from runyard.sdk.inference import InferenceConfig as InferenceConfig
from runyard.sdk.model import Model as Model
