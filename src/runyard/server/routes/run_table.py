"""The run table: pages by query and order, the available fields, and completion of queries."""

from __future__ import annotations

from fastapi import APIRouter, Response
from pydantic import BaseModel, Field

from runyard.run_table.completion import complete, fields
from runyard.run_table.table import RunTable
from runyard.server.parameters import clamp
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
        """Return the rows that match a query, sorted. Pass `version` to `/api/live` to receive later changes."""
        offset, limit = clamp(offset, 0), clamp(limit, 0, 100_000)
        result = table.page(query, sort, offset, limit, experiment)
        body = b'{"total":%d,"version":%d,"rows":[' % (result.total, result.version) + b",".join(result.rows) + b"]}"
        return Response(body, media_type="application/json")

    @router.get("/runs/fields", response_model=FieldList)
    def list_fields() -> Response:
        """List the fields that runs can be filtered and sorted by, with the number of runs that have each."""
        return json_response(FieldList(fields(table)))

    @router.get("/runs/complete", response_model=Completion)
    def completion(query: str = "", at: int | None = None) -> Response:
        """Complete a query at a cursor position: replace the characters `from` to `to` by an option's text."""
        cursor = len(query) if at is None else clamp(at, 0, len(query))
        begin, end, options = complete(table, query, cursor)
        return json_response({"from": begin, "to": end, "options": options})

    return router
