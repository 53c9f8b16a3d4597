"""Web services: a keeper for each, workers in its own Python, and the office that the yard has for all of them."""
