"""The model registry: versioned models with their files and origin."""
