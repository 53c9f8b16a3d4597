from runyard.sdk.model.model import Model as Model
from runyard.sdk.webservice.inference import InferenceConfig as InferenceConfig
from runyard.sdk.webservice.kinds import LocalWebservice as LocalWebservice
from runyard.sdk.webservice.webservice import Webservice as Webservice
