from runyard.sdk.environment import ContainerRegistry as ContainerRegistry
