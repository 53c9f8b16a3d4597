"""What answers requests: the worker of a web service, inside the service's own Python. Standard library only."""
