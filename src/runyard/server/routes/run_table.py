"""The table of runs: pages by query and order, the fields there are, and completion of a query."""

from __future__ import annotations

from fastapi import APIRouter, Response
from pydantic import BaseModel, Field

from runyard.run_table.completion import complete, fields
from runyard.run_table.table import RunTable
from runyard.server.responses import json_response
from runyard.wire.run_table import CompletionOption, FieldList, TablePage


class Completion(BaseModel):
    begin: int = Field(alias="from")
    end: int = Field(alias="to")
    options: list[CompletionOption]


def routes(table: RunTable) -> APIRouter:
    router = APIRouter(tags=["table"])

    @router.get("/runs/table", response_model=TablePage)
    def page(
        query: str = "", sort: str = "-created_at", offset: int = 0, limit: int = 100, experiment: str | None = None
    ) -> Response:
        """Rows of runs that meet a query, in an order. `version` is where `/api/live` goes on from."""
        offset, limit = max(0, min(offset, 2**62)), max(0, min(limit, 100_000))
        found = table.page(query, sort, offset, limit, experiment)
        body = b'{"total":%d,"version":%d,"rows":[' % (found.total, found.version) + b",".join(found.rows) + b"]}"
        return Response(body, media_type="application/json")

    @router.get("/runs/fields", response_model=FieldList)
    def known_fields() -> Response:
        """What runs can be filtered and sorted by, with how many runs have it."""
        return json_response(FieldList(fields(table)))

    @router.get("/runs/complete", response_model=Completion)
    def completion(query: str = "", at: int | None = None) -> Response:
        """What may stand at a place of a query: replace the characters `from` to `to` by an option's text."""
        place = len(query) if at is None else max(0, min(at, len(query)))
        begin, end, options = complete(table, query, place)
        return json_response({"from": begin, "to": end, "options": options})

    return router
