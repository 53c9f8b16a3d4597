from runyard.sdk.model.image import Image as Image
from runyard.sdk.model.model import Model as Model
