"""Request and response types of the HTTP API: frozen dataclasses, shared by client and server."""
