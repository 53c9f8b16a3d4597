from runyard.sdk.environment.sections import ContainerRegistry as ContainerRegistry
