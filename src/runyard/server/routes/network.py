"""Where the yard listens on the network. These are for its owner alone, over the unix socket."""

from __future__ import annotations

from fastapi import APIRouter, Response

from runyard.server.answers import answer
from runyard.server.network import Network
from runyard.wire.yard import Listen, StudioAddress


def routes(net: Network) -> APIRouter:
    router = APIRouter(tags=["yard"])

    @router.get("/studio", response_model=StudioAddress | None)
    def where() -> Response:
        """The address of the studio, with the token; null when the yard does not listen on the network."""
        return answer(net.address)

    @router.post("/studio", response_model=StudioAddress)
    def listen(request: Listen) -> Response:
        """Listen on the network. Where it listens already, it stays."""
        return answer(net.open(request))

    @router.delete("/studio", status_code=204)
    def close() -> Response:
        """Do not listen on the network any more."""
        net.close()
        return Response(status_code=204)

    return router
