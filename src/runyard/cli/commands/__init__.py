"""One module for each verb. Its `app` is the command; what is slow to import is imported where it is used."""
