"""What differs from host to host stands in an order as these words, until it is known where the order goes."""

from __future__ import annotations

HOST_FOLDER = "/<host>"  # ours on the host
HOST_PATH = "<PATH of the host>"
