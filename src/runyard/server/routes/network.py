"""Where the yard listens on the network. These are for its owner alone, over the unix socket."""

from __future__ import annotations

import threading
from collections.abc import Callable

from fastapi import APIRouter, Response

from runyard.server.network import Network
from runyard.server.responses import json_response
from runyard.wire.yard import ListenOptions, StudioAddress


def routes(net: Network, warm_up: Callable[[], object]) -> APIRouter:
    """``warm_up`` is done in the background while the browser starts."""
    router = APIRouter(tags=["yard"])

    @router.get("/studio", response_model=StudioAddress | None)
    def where() -> Response:
        """The address of the studio, with the token; null when the yard does not listen on the network."""
        return json_response(net.address)

    @router.post("/studio", response_model=StudioAddress)
    def listen(request: ListenOptions) -> Response:
        """Listen on the network. Where it listens already, it stays."""
        threading.Thread(target=warm_up, name="warm-up", daemon=True).start()
        return json_response(net.open(request))

    @router.delete("/studio", status_code=204)
    def close() -> Response:
        """Do not listen on the network any more."""
        net.close()
        return Response(status_code=204)

    return router
