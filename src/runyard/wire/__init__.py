"""The JSON shapes that cross between client and server: frozen dataclasses, shared by both, owned by neither."""
