from runyard.sdk.image import Image as Image
from runyard.sdk.model import Model as Model
from runyard.sdk.webservice import Webservice as Webservice
