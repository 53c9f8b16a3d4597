from runyard.sdk.image import ContainerImage as ContainerImage
from runyard.sdk.image import Image as Image
