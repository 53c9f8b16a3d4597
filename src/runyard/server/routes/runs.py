"""Runs: submit, begin, get, list, end, label."""

from __future__ import annotations

from fastapi import APIRouter, Response

from runyard.errors import UserErrorException
from runyard.lifecycle import events as on
from runyard.lifecycle.state import End, EndReason, RunState
from runyard.orchestrator.conductor import Conductor
from runyard.orchestrator.run_secrets import redact
from runyard.orchestrator.submit import attach_snapshot, dry_run, open_run, submit
from runyard.server.parameters import clamp, parse_object
from runyard.server.responses import json_response, run_page_response, run_view
from runyard.wire.runs import (
    BeginRun,
    FailRun,
    Labels,
    Params,
    RenameRun,
    RunPage,
    RunView,
    SetSnapshot,
    SubmitRun,
)


def routes(conductor: Conductor) -> APIRouter:
    router = APIRouter(tags=["runs"])
    store = conductor.components.runs

    @router.post("/runs/from-folder", response_model=RunView, deprecated=True)
    @router.post("/runs", response_model=RunView)
    def submit_run(request: SubmitRun) -> Response:
        """Submit a run of an uploaded snapshot, or of a folder of this machine, of which the yard takes a snapshot.

        Idempotent: the same id yields the same run.
        """
        return json_response(run_view(conductor, submit(conductor, request)))

    @router.post("/runs/dry-run")
    def dry_run_of(request: SubmitRun) -> Response:
        """Show the host, command and variables of every process that a submission would start."""
        return json_response({"text": dry_run(conductor, request)})

    @router.post("/runs/begin", response_model=RunView)
    def begin_run(request: BeginRun) -> Response:
        """Start a run in the caller's own process."""
        return json_response(run_view(conductor, open_run(conductor, request)))

    @router.get("/runs", response_model=RunPage)
    def list_runs(
        experiment: str | None = None,
        parent: str | None = None,
        type: str | None = None,
        tags: str | None = None,
        properties: str | None = None,
        status: str | None = None,
        include_children: bool = False,
        fragment: str | None = None,
        before: int | None = None,
        limit: int = 100,
    ) -> Response:
        """List runs, newest first. `tags` and `properties` are JSON objects; null matches every value of the key.

        `fragment` selects runs whose id, or a part of it after a `_`, begins with it, and those whose id ends with it.
        """
        limit = clamp(limit, 1, 10_000)
        numbers = store.find_numbers(
            experiment=experiment,
            parent_id=parent,
            type=type,
            tags=parse_object(tags, "tags"),
            properties=parse_object(properties, "properties"),
            states=None if status is None else [_parse_state(word) for word in status.split(",")],
            include_children=include_children,
            fragment=fragment,
            before=None if before is None else clamp(before, 0),
            limit=limit + 1,
        )
        return run_page_response(conductor, numbers[:limit], has_more=len(numbers) > limit)

    @router.get("/runs/{run_id}", response_model=RunView)
    def get_run(run_id: str) -> Response:
        return json_response(run_view(conductor, store.load(run_id)))

    @router.patch("/runs/{run_id}", response_model=RunView)
    def rename_run(run_id: str, request: RenameRun) -> Response:
        store.rename(run_id, request.name)
        conductor.notifier.notify(run_id)
        return json_response(run_view(conductor, store.load(run_id)))

    @router.post("/runs/{run_id}/cancel", response_model=RunView)
    def cancel_run(run_id: str) -> Response:
        conductor.cancel(run_id)
        return json_response(run_view(conductor, store.load(run_id)))

    @router.post("/runs/{run_id}/complete", response_model=RunView)
    def complete_run(run_id: str) -> Response:
        conductor.post(run_id, on.MarkedComplete())
        return json_response(run_view(conductor, store.load(run_id)))

    @router.post("/runs/{run_id}/fail", response_model=RunView)
    def fail_run(run_id: str, request: FailRun) -> Response:
        message = f"{request.code}: {request.message}" if request.code else request.message
        message = redact(conductor.components, store.load(run_id), message)
        end = End(EndReason.MARKED_FAILED, message or "marked as failed by its owner")
        conductor.post(run_id, on.MarkedFailed(end))
        return json_response(run_view(conductor, store.load(run_id)))

    @router.post("/runs/{run_id}/snapshot", response_model=RunView)
    def set_snapshot(run_id: str, request: SetSnapshot) -> Response:
        return json_response(run_view(conductor, attach_snapshot(conductor, run_id, request.snapshot_id)))

    @router.patch("/runs/{run_id}/tags", response_model=RunView)
    def set_tags(run_id: str, request: Labels) -> Response:
        store.set_tags(run_id, request.set, request.remove)
        conductor.notifier.notify(run_id)
        return json_response(run_view(conductor, store.load(run_id)))

    @router.patch("/runs/{run_id}/properties", response_model=RunView)
    def add_properties(run_id: str, request: Labels) -> Response:
        store.add_properties(run_id, request.set)
        return json_response(run_view(conductor, store.load(run_id)))

    @router.get("/runs/{run_id}/params", response_model=Params)
    def get_params(run_id: str) -> Response:
        """Return the parameters of a run: the arguments of its script, and those that it recorded."""
        store.load(run_id)
        return json_response(Params(store.params([run_id])[run_id]))

    @router.patch("/runs/{run_id}/params", response_model=Params)
    def set_params(run_id: str, request: Params) -> Response:
        """Record parameters; an existing one gets the new value."""
        store.set_params(run_id, request.params)
        conductor.notifier.notify(run_id)
        return json_response(Params(store.params([run_id])[run_id]))

    return router


def _parse_state(word: str) -> RunState:
    for state in RunState:
        if state.value.lower() == word.strip().lower():
            return state
    raise UserErrorException(f"unknown run status {word!r}", hint=f"use {', '.join(RunState)}")
