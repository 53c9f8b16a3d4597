from runyard.sdk.tensorboard import Tensorboard as Tensorboard
