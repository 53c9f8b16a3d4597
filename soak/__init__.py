"""The soak test: mixed runs, faults, a service and readers for a long time, with figures at the end."""
