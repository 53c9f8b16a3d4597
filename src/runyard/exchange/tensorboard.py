"""TensorBoard's event files: each folder that holds some is a run."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from runyard.errors import UserErrorException
from runyard.exchange.found import COMPLETED, Curve, FoundRun, add, an_id, new_curve
from runyard.tracking.series import SCALAR
from runyard.tracking.summaries import Said, read_event
from runyard.wire.event_records import DamagedRecord, is_event_file, records


def runs(root: Path) -> Iterator[FoundRun]:
    """The files themselves are kept too, with their histograms and images: nothing of them is lost."""
    for folder in sorted({path.parent for path in root.rglob("*") if is_event_file(path.name) and path.is_file()}):
        files = sorted(path for path in folder.iterdir() if is_event_file(path.name) and path.is_file())
        times = [said.time for path in files for said in _said(path)]
        if not times:
            continue
        name = folder.relative_to(root).as_posix() if folder != root else folder.resolve().name
        experiment = root.resolve().name
        yield FoundRun(
            run_id=an_id(experiment, name, f"{min(times):.6f}"),
            experiment=experiment,
            name=name,
            status=COMPLETED,
            created_at=min(times),
            ended_at=max(times),
            source="tensorboard",
            curves=lambda files=files: _curves(files),  # type: ignore[misc]
            files=[(f"logs/{path.name}", path) for path in files],
        )


def _curves(files: list[Path]) -> Iterator[Curve]:
    """A run that was resumed has several files, whose names begin with the time."""
    curves: dict[str, Curve] = {}
    for path in files:
        for said in _said(path):
            if said.kind == SCALAR:
                add(curves.setdefault(said.tag, new_curve(said.tag)), said.step, said.time, float(said.value))
    yield from curves.values()


def _said(path: Path) -> Iterator[Said]:
    try:
        for event, _ in records(path.read_bytes()):
            try:
                yield from read_event(event)
            except (ValueError, ArithmeticError):
                continue  # of a kind that nobody knows
    except DamagedRecord as error:
        raise UserErrorException(
            f"{path} is damaged at byte {error.facts['at']:,}: {error.message}",
            hint="move it away, and import the rest",
        ) from error
