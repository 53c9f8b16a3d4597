"""The yard's TCP listener. These endpoints are available over the unix socket only."""

from __future__ import annotations

import threading
from collections.abc import Callable

from fastapi import APIRouter, Response

from runyard.server.network import Network
from runyard.server.responses import json_response
from runyard.wire.yard import ListenOptions, StudioAddress


def routes(net: Network, warm_up: Callable[[], object]) -> APIRouter:
    """Run ``warm_up`` in the background while the browser starts."""
    router = APIRouter(tags=["yard"])

    @router.get("/studio", response_model=StudioAddress | None)
    def address() -> Response:
        """Return the address of the studio and the token; null if the yard does not listen on TCP."""
        return json_response(net.address)

    @router.post("/studio", response_model=StudioAddress)
    def listen(request: ListenOptions) -> Response:
        """Listen on TCP. The current address is kept unless another one is requested."""
        threading.Thread(target=warm_up, name="warm-up", daemon=True).start()
        return json_response(net.open(request))

    @router.delete("/studio", status_code=204)
    def close() -> Response:
        """Stop listening on TCP."""
        net.close()
        return Response(status_code=204)

    return router
