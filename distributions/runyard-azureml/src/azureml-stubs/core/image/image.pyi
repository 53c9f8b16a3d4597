from runyard.sdk.image import Image as Image
from runyard.sdk.model import Model as Model
