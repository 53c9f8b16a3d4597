"""Datastores, their files, and transfers to and from them."""

from __future__ import annotations

from collections.abc import AsyncIterator

from fastapi import APIRouter, Response
from starlette.concurrency import run_in_threadpool

from runyard import clock
from runyard.data.backends import FOLDER
from runyard.data.base import clean_path
from runyard.data.registry import Datastores
from runyard.data.transfer_jobs import RUNNING, Transfers
from runyard.orchestrator.change_notifier import ChangeNotifier
from runyard.orchestrator.conductor import Conductor
from runyard.server.responses import encode_event, event_stream_response, json_response
from runyard.store.datastores import DatastoreRecord
from runyard.wire.data import (
    DatastoreView,
    ListingView,
    RegisterDatastore,
    StoredEntry,
    TransferRequest,
    TransferView,
)

_POLL_S = 0.2
_KEEP_ALIVE_S = 10.0
_MAX_ENTRIES = 10_000


def routes(conductor: Conductor, transfers: Transfers) -> APIRouter:
    router = APIRouter(tags=["data"])
    stores = conductor.components.stager.stores
    notifier = ChangeNotifier()
    transfers.on_end = lambda transfer_id: notifier.notify(transfer_id, urgent=True)

    @router.get("/datastores", response_model=list[DatastoreView])
    def datastores() -> Response:
        return json_response([_view(stores, record) for record in stores.all()])

    @router.post("/datastores", response_model=DatastoreView)
    def register(request: RegisterDatastore) -> Response:
        """Register a datastore after an access check, unless `skip_validation`.

        Credentials are stored in a file that only the owner can read.
        """
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
        """Return a datastore; `-` is the default one."""
        return json_response(_view(stores, stores.default if name == "-" else stores.record(name)))

    @router.delete("/datastores/{name}", status_code=204)
    def unregister(name: str) -> Response:
        """Unregister a datastore; its files are kept."""
        stores.unregister(name)
        return Response(status_code=204)

    @router.put("/datastores/{name}/default", response_model=DatastoreView)
    def make_default(name: str) -> Response:
        stores.make_default(name)
        return json_response(_view(stores, stores.record(name)))

    @router.get("/datastores/{name}/files", response_model=ListingView)
    def files(name: str, below: str = "", recursive: bool = False) -> Response:
        """List the files and folders of one folder, or with `recursive` all files below it."""
        return json_response(_listing(stores, name, clean_path(below), recursive))

    @router.delete("/datastores/{name}/files")
    def delete(name: str, below: str) -> Response:
        """Delete one file or all files below a folder; returns their number and size."""
        store = stores.open_to_write(name)
        files = list(store.list(clean_path(below)))
        for stored in files:
            store.delete(stored.path)
        stores.digests.remove(name, [stored.path for stored in files])
        return json_response({"files": len(files), "bytes": sum(stored.size for stored in files)})

    @router.get("/transfers", response_model=list[TransferView])
    def newest() -> Response:
        """List transfers, newest first."""
        return json_response(transfers.newest())

    @router.post("/transfers/{transfer_id}", response_model=TransferView)
    def begin(transfer_id: str, request: TransferRequest) -> Response:
        """Start a transfer. Idempotent: the same id yields the same transfer."""
        return json_response(transfers.begin(transfer_id, request))

    @router.get("/transfers/{transfer_id}", response_model=TransferView)
    def transfer(transfer_id: str) -> Response:
        return json_response(transfers.view(transfer_id))

    @router.post("/transfers/{transfer_id}/cancel", response_model=TransferView)
    def cancel(transfer_id: str) -> Response:
        """Cancel a transfer. Files that were transferred completely are kept."""
        return json_response(transfers.cancel(transfer_id))

    @router.get("/transfers/{transfer_id}/follow")
    async def follow(transfer_id: str) -> Response:
        """Stream events: `progress` and finally `end`, each with a transfer."""
        await run_in_threadpool(transfers.view, transfer_id)
        return event_stream_response(_events(conductor, transfers, notifier, transfer_id))

    return router


async def _events(
    conductor: Conductor, transfers: Transfers, notifier: ChangeNotifier, transfer_id: str
) -> AsyncIterator[bytes]:
    sent_progress, sent_at = None, clock.monotonic()
    async with notifier.subscribe(transfer_id) as subscription:
        while True:
            view = await run_in_threadpool(transfers.view, transfer_id)
            progress = (view.state, view.files_done, view.bytes_done, view.doing)
            if view.state != RUNNING:
                yield encode_event("end", view)
                return
            if progress != sent_progress or clock.monotonic() - sent_at > _KEEP_ALIVE_S:
                sent_progress, sent_at = progress, clock.monotonic()
                yield encode_event("progress", view)
            if conductor.notifier.closed:
                return
            await subscription.next(_POLL_S)


def _view(stores: Datastores, record: DatastoreRecord) -> DatastoreView:
    is_built_in = not record.configuration
    if is_built_in or record.kind == FOLDER or record.configuration.get("anonymous"):
        credentials = "none"
    else:
        credentials = "kept" if stores.has_credentials(record.name) else "environment"
    return DatastoreView(
        record.name, record.kind, record.configuration, record.is_default, credentials, record.created_at
    )


def _listing(stores: Datastores, name: str, path: str, recursive: bool) -> ListingView:
    entries: dict[str, StoredEntry] = {}
    files = size = 0
    prefix_length = len(path) + 1 if path else 0
    for stored in stores.open(name).list(path):
        files, size = files + 1, size + stored.size
        rest = stored.path[prefix_length:] if len(stored.path) > prefix_length else stored.path
        first, slash, _ = rest.partition("/")
        if recursive or not slash:
            entries[stored.path] = StoredEntry(stored.path, stored.size, stored.modified_at)
        else:
            folder = f"{path}/{first}" if path else first
            entry = entries.get(folder, StoredEntry(folder, 0, 0.0, is_folder=True))
            modified_at = max(entry.modified_at, stored.modified_at)
            entries[folder] = StoredEntry(folder, entry.size + stored.size, modified_at, is_folder=True)
    ordered = [entries[key] for key in sorted(entries)]
    return ListingView(name, path, ordered[:_MAX_ENTRIES], files, size, truncated=len(ordered) > _MAX_ENTRIES)
