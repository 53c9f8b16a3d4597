from runyard.sdk.data.dataset import Dataset as Dataset
from runyard.sdk.environment.environment import Environment as Environment
from runyard.sdk.model.model import Model as Model
from runyard.sdk.webservice.inference import InferenceConfig as InferenceConfig
