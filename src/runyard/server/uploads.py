"""Files in request bodies."""

from __future__ import annotations

import tempfile
from pathlib import Path

from fastapi import Request
from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect

from runyard.spec.folder import HomeFolder
from runyard.tracking.artifacts import INCOMING_PREFIX, Artifact, Artifacts

_WRITE_BYTES = 4 << 20
CLIENT_CLOSED_REQUEST = 499  # the client is gone and does not read the response


async def store_upload(request: Request, home: Path, artifacts: Artifacts, owner: str, name: str) -> Artifact | None:
    """Store the request body as a file of ``owner``, completely or not at all; None if the client disconnects."""
    handle, draft = tempfile.mkstemp(prefix=INCOMING_PREFIX, dir=HomeFolder(home).artifacts)
    try:
        with open(handle, "wb") as file:
            buffer = bytearray()  # chunks are small: handing each to a thread would cost more than writing it
            async for chunk in request.stream():
                buffer += chunk
                if len(buffer) >= _WRITE_BYTES:
                    await run_in_threadpool(file.write, buffer)
                    buffer = bytearray()
            await run_in_threadpool(file.write, buffer)
        return await run_in_threadpool(artifacts.store_file, owner, name, Path(draft), move=True)
    except ClientDisconnect:
        return None
    finally:
        await run_in_threadpool(Path(draft).unlink, missing_ok=True)
