from runyard.sdk.frameworks import SKLearn as SKLearn
