from runyard.sdk.model.resources import ResourceConfiguration as ResourceConfiguration
