from runyard.sdk.inference import InferenceConfig as InferenceConfig
from runyard.sdk.model import Model as Model
from runyard.sdk.webservice import Webservice as Webservice
from runyard.sdk.webservice_kinds import LocalWebservice as LocalWebservice
