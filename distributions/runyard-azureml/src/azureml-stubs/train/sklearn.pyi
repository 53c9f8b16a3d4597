from runyard.sdk.training.frameworks import SKLearn as SKLearn
