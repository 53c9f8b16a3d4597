from runyard.sdk.environment.environment import ContainerRegistry as ContainerRegistry
