"""The worker of a web service, which runs in the service's environment. Standard library only."""
