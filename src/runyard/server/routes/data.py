"""Datastores, what is in them, and what is on its way to or from them."""

from __future__ import annotations

from collections.abc import AsyncIterator

from fastapi import APIRouter, Response
from fastapi.responses import StreamingResponse
from starlette.concurrency import run_in_threadpool

from runyard import clock
from runyard.data.backends import FOLDER
from runyard.data.base import clean_path
from runyard.data.registry import Datastores
from runyard.data.transfer_jobs import RUNNING, Transfers
from runyard.orchestrator.change_notifier import Bell
from runyard.orchestrator.conductor import Conductor
from runyard.server.responses import encode_json, json_response
from runyard.store.datastores import DatastoreRecord
from runyard.wire.data import (
    DatastoreView,
    ListingView,
    RegisterDatastore,
    StoredEntry,
    TransferRequest,
    TransferView,
)

_LOOK_EVERY_S = 0.2
_SAY_SOMETHING_EVERY_S = 10.0
_MOST_LISTED = 10_000


def routes(conductor: Conductor, transfers: Transfers | None) -> APIRouter:
    router = APIRouter(tags=["data"])
    stores = conductor.rooms.stager.stores
    moving = transfers or Transfers(conductor.rooms.database, stores)
    bell = Bell()
    moving.on_end = lambda transfer_id: bell.ring(transfer_id, urgent=True)

    @router.get("/datastores", response_model=list[DatastoreView])
    def datastores() -> Response:
        return json_response([_view(stores, record) for record in stores.all()])

    @router.post("/datastores", response_model=DatastoreView)
    def register(request: RegisterDatastore) -> Response:
        """Tried before it is taken, unless `skip_validation`. Credentials are kept in a file of the owner's alone."""
        record = stores.register(
            request.name,
            request.kind,
            request.configuration,
            overwrite=request.overwrite,
            skip_validation=request.skip_validation,
        )
        return json_response(_view(stores, record))

    @router.get("/datastores/{name}", response_model=DatastoreView)
    def datastore(name: str) -> Response:
        """`-` is the default one."""
        return json_response(_view(stores, stores.default if name == "-" else stores.record(name)))

    @router.delete("/datastores/{name}", status_code=204)
    def unregister(name: str) -> Response:
        """What is in it stays."""
        stores.unregister(name)
        return Response(status_code=204)

    @router.put("/datastores/{name}/default", response_model=DatastoreView)
    def make_default(name: str) -> Response:
        stores.make_default(name)
        return json_response(_view(stores, stores.record(name)))

    @router.get("/datastores/{name}/files", response_model=ListingView)
    def files(name: str, below: str = "", recursive: bool = False) -> Response:
        """The files and folders of one folder, or all files below it."""
        return json_response(_listing(stores, name, clean_path(below), recursive))

    @router.delete("/datastores/{name}/files")
    def delete(name: str, below: str) -> Response:
        """One file, or everything below a folder; answers how many files it were."""
        store = stores.open_to_write(name)
        found = list(store.list(clean_path(below)))
        for stored in found:
            store.delete(stored.path)
        stores.digests.remove(name, [stored.path for stored in found])
        return json_response({"files": len(found), "bytes": sum(stored.size for stored in found)})

    @router.get("/transfers", response_model=list[TransferView])
    def newest() -> Response:
        """The newest first."""
        return json_response(moving.newest())

    @router.post("/transfers/{transfer_id}", response_model=TransferView)
    def begin(transfer_id: str, request: TransferRequest) -> Response:
        """Asked for again under the same id, it is the same transfer."""
        return json_response(moving.begin(transfer_id, request))

    @router.get("/transfers/{transfer_id}", response_model=TransferView)
    def transfer(transfer_id: str) -> Response:
        return json_response(moving.view(transfer_id))

    @router.post("/transfers/{transfer_id}/cancel", response_model=TransferView)
    def cancel(transfer_id: str) -> Response:
        """What has arrived stays: each file of it is whole."""
        return json_response(moving.cancel(transfer_id))

    @router.get("/transfers/{transfer_id}/follow")
    async def follow(transfer_id: str) -> Response:
        """Events `progress`, and at the end `end`: a transfer each."""
        await run_in_threadpool(moving.view, transfer_id)
        return StreamingResponse(_events(conductor, moving, bell, transfer_id), media_type="text/event-stream")

    return router


async def _events(conductor: Conductor, moving: Transfers, bell: Bell, transfer_id: str) -> AsyncIterator[bytes]:
    told, spoke_at = None, clock.monotonic()
    async with bell.listen(transfer_id) as listener:
        while True:
            view = await run_in_threadpool(moving.view, transfer_id)
            now = (view.state, view.files_done, view.bytes_done, view.doing)
            if view.state != RUNNING:
                yield b"event: end\ndata: " + encode_json(view) + b"\n\n"
                return
            if now != told or clock.monotonic() - spoke_at > _SAY_SOMETHING_EVERY_S:
                told, spoke_at = now, clock.monotonic()
                yield b"event: progress\ndata: " + encode_json(view) + b"\n\n"
            if conductor.bell.closed:
                return
            await listener.next(_LOOK_EVERY_S)


def _view(stores: Datastores, record: DatastoreRecord) -> DatastoreView:
    is_the_yards = not record.configuration
    if is_the_yards or record.kind == FOLDER or record.configuration.get("anonymous"):
        credentials = "none"
    else:
        credentials = "kept" if stores.has_credentials(record.name) else "environment"
    return DatastoreView(
        record.name, record.kind, record.configuration, record.is_default, credentials, record.created_at
    )


def _listing(stores: Datastores, name: str, path: str, recursive: bool) -> ListingView:
    entries: dict[str, StoredEntry] = {}
    files = size = 0
    cut = len(path) + 1 if path else 0
    for stored in stores.open(name).list(path):
        files, size = files + 1, size + stored.size
        rest = stored.path[cut:] if len(stored.path) > cut else stored.path
        first, slash, _ = rest.partition("/")
        if recursive or not slash:
            entries[stored.path] = StoredEntry(stored.path, stored.size, stored.modified_at)
        else:
            folder = f"{path}/{first}" if path else first
            known = entries.get(folder, StoredEntry(folder, 0, 0.0, is_folder=True))
            newest = max(known.modified_at, stored.modified_at)
            entries[folder] = StoredEntry(folder, known.size + stored.size, newest, is_folder=True)
    ordered = [entries[key] for key in sorted(entries)]
    return ListingView(name, path, ordered[:_MOST_LISTED], files, size, truncated=len(ordered) > _MOST_LISTED)
