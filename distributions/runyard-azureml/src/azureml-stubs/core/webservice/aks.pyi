from runyard.sdk.environment.environment import Environment as Environment
from runyard.sdk.model.image import Image as Image
from runyard.sdk.model.model import Model as Model
from runyard.sdk.webservice.kinds import AksWebservice as AksWebservice
from runyard.sdk.webservice.webservice import Webservice as Webservice
