from runyard.sdk.model.image import ContainerImage as ContainerImage
from runyard.sdk.model.image import Image as Image
