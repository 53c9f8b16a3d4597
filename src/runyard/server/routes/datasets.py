"""Datasets: content, names and versions, use by runs; and lineage."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Response

from runyard.data.datasets import Datasets
from runyard.errors import UserErrorException
from runyard.orchestrator.conductor import Conductor
from runyard.server.responses import json_response
from runyard.spec.dataset import DatasetDefinition, validate_definition
from runyard.spec.json import from_json, to_json
from runyard.store import lineage
from runyard.store.datasets import Dataset
from runyard.wire.datasets import (
    ChangeDataset,
    DataDifference,
    DatasetContent,
    DatasetFile,
    DatasetFiles,
    DatasetPage,
    DatasetQuery,
    DatasetView,
    LineageView,
    LocalPath,
    PinDataset,
    PinState,
    RunInput,
    SaveDataset,
)

_MAX_WAIT_S = 30.0
_MAX_NAME_LENGTH = 255


def routes(conductor: Conductor) -> APIRouter:
    router = APIRouter(tags=["datasets"])
    datasets = conductor.components.datasets
    saved = datasets.saved

    @router.get("/datasets", response_model=list[DatasetView])
    def newest() -> Response:
        """List the newest version of each name."""
        return json_response([_view(dataset) for dataset in saved.newest()])

    @router.post("/datasets", response_model=DatasetView)
    def save(request: SaveDataset) -> Response:
        """Save a dataset as the next version of its name; without a name it only gets an id."""
        if request.name is not None and not 0 < len(request.name.strip()) <= _MAX_NAME_LENGTH:
            raise UserErrorException(f"the name of a dataset must have 1 to {_MAX_NAME_LENGTH} characters")
        dataset = Dataset(
            "",
            request.name,
            None,
            _definition(request.definition),
            description=request.description,
            tags=request.tags,
            run_id=request.run_id,
        )
        return json_response(_view(datasets.save(dataset, request.create_new_version)))

    @router.delete("/datasets", status_code=204)
    def unregister(name: str) -> Response:
        """Unregister all versions of a name; they can still be accessed by id."""
        saved.unregister(name)
        return Response(status_code=204)

    @router.get("/datasets/one", response_model=DatasetView)
    def get(name: str | None = None, version: int | None = None, id: str | None = None) -> Response:
        """Return a dataset by id, or by name and version (default: the newest)."""
        return json_response(_view(_find(datasets, name, version, id)))

    @router.get("/datasets/page", response_model=DatasetPage)
    def page(name: str | None = None, version: int | None = None, id: str | None = None) -> Response:
        """Return one version, all versions of its name, and the runs that used it, newest first."""
        dataset = _find(datasets, name, version, id)
        versions = saved.versions(dataset.name) if dataset.name else [dataset]
        return json_response(
            DatasetPage(_view(dataset), [_view(each) for each in versions], _runs(conductor, datasets, dataset))
        )

    @router.get("/datasets/now", response_model=DatasetContent)
    def current_content(name: str | None = None, version: int | None = None, id: str | None = None) -> Response:
        """Return the dataset's current content, compared to its content when it was saved."""
        dataset = _find(datasets, name, version, id)
        pinned = datasets.pin(dataset.definition)
        same = pinned.digest == dataset.digest if dataset.digest else None
        return json_response(DatasetContent(pinned.digest, pinned.files, pinned.bytes, same))

    @router.post("/datasets/look", response_model=DatasetFiles)
    def summarize(request: DatasetQuery) -> Response:
        """Return the number and total size of the files. Fails if there are none."""
        members = datasets.files(_definition(request.definition))
        return json_response(DatasetFiles([], len(members.files), members.bytes))

    @router.post("/datasets/files", response_model=DatasetFiles)
    def files(request: DatasetQuery) -> Response:
        members = datasets.files(_definition(request.definition))
        entries = [DatasetFile(m.name, m.stored.size, m.stored.modified_at) for m in members.files]
        return json_response(DatasetFiles(entries, len(entries), members.bytes))

    @router.post("/datasets/pin", response_model=PinState)
    def pin(request: PinDataset) -> Response:
        """Compute the digest of the content in the background. Repeat the request until `done` is true."""
        wait_s = min(max(request.wait_s, 0.0), _MAX_WAIT_S)
        pinning = datasets.pin_in_background(_definition(request.definition), wait_s)
        if pinning.error is not None:
            raise pinning.error
        if pinning.result is None:
            return json_response(PinState(False, pinning.activity))
        return json_response(PinState(True, digest=pinning.result.digest))

    @router.post("/datasets/here", response_model=LocalPath)
    def local_path(request: DatasetQuery) -> Response:
        """Return the local path of the files; downloads them if needed."""
        return json_response(LocalPath(str(datasets.local_path(_definition(request.definition)))))

    @router.patch("/datasets/{dataset_id}", response_model=DatasetView)
    def change(dataset_id: str, request: ChangeDataset) -> Response:
        return json_response(_view(saved.change(dataset_id, request.description, request.tags)))

    @router.get("/diff/data", response_model=list[DataDifference])
    def data_changes(a: str, b: str) -> Response:
        """Compare the inputs of two runs."""
        first, second = (_run_inputs(datasets, conductor.components.runs.load(run_id).run_id) for run_id in (a, b))
        names = dict.fromkeys([*first, *second])
        return json_response([_difference(name, first.get(name), second.get(name)) for name in names])

    @router.get("/lineage", response_model=LineageView)
    def lineage_of(run: str | None = None, model: str | None = None, dataset: str | None = None) -> Response:
        """Return the graph of datasets, runs, models and services that a run, model or dataset is connected to.

        `run` is an id; `model` and `dataset` are a name, or a name and a version such as `mnist:2`.
        """
        database = conductor.components.database
        if [run, model, dataset].count(None) != 2:
            raise UserErrorException("expected exactly one of run, model and dataset")
        if run is not None:
            graph = lineage.trace_run(database, conductor.components.runs.load(run).run_id)
        elif model is not None:
            graph = lineage.trace_model(database, model)
        else:
            graph = lineage.trace_dataset(database, dataset or "")
        edges = [vars(edge) for edge in graph.edges.values()]
        return json_response(LineageView(graph.start, list(graph.nodes.values()), edges, graph.truncated))

    return router


def _definition(content: dict[str, Any]) -> DatasetDefinition:
    return validate_definition(from_json(DatasetDefinition, content))


def _find(datasets: Datasets, name: str | None, version: int | None, id: str | None) -> Dataset:
    if (name is None) == (id is None):
        raise UserErrorException("expected either the name or the id of a dataset")
    return datasets.saved.by_id(id) if id is not None else datasets.saved.by_name(name or "", version)


def _view(dataset: Dataset) -> DatasetView:
    definition = dataset.definition
    facts = {name: value for name, value in vars(dataset).items() if name != "definition"}
    return DatasetView(
        **facts,
        kind=definition.kind,
        definition=to_json(definition),
        sources=[source.url or f"{source.datastore}/{source.path}" for source in definition.sources],
    )


def _run_inputs(datasets: Datasets, run_id: str) -> dict[str, RunInput]:
    inputs = {}
    for use in datasets.saved.uses_by_runs([run_id]):
        label = f"{use.dataset_name}:{use.dataset_version}" if use.dataset_name else f"{use.datastore}/{use.path}"
        inputs[use.name] = RunInput(label, use.mode, use.dataset_id, use.digest)
    return inputs


def _difference(name: str, a: RunInput | None, b: RunInput | None) -> DataDifference:
    same: bool | None = False
    if a is not None and b is not None:
        # a path in a datastore has no digest: its earlier content is unknown
        same = a.digest == b.digest if a.digest and b.digest else None if a.label == b.label else False
    return DataDifference(name, a, b, same)


def _runs(conductor: Conductor, datasets: Datasets, dataset: Dataset) -> list[dict[str, Any]]:
    uses = datasets.saved.uses_of_datasets([dataset.dataset_id])
    records = {r.run_id: r for r in conductor.components.runs.find(run_ids=[use.run_id for use in uses], limit=1000)}
    views = []
    for use in sorted(uses, key=lambda use: -records[use.run_id].number if use.run_id in records else 0):
        record = records.get(use.run_id)
        views.append(
            {
                "run_id": use.run_id,
                "name": use.name,
                "mode": use.mode,
                "digest": use.digest,
                "same": use.digest == dataset.digest if use.digest and dataset.digest else None,
                "status": record.life.state.value if record else None,
                "experiment": record.experiment if record else None,
                "created_at": record.created_at if record else None,
            }
        )
    return views
