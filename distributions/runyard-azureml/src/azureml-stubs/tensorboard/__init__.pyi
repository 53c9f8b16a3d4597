from runyard.sdk.notebook.tensorboard import Tensorboard as Tensorboard
