"""Web services: a supervisor per service, workers in the service's environment, and the manager in the yard."""
