"""Event files written by TensorBoard's own writer are ingested exactly once."""

from __future__ import annotations

import random
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tensorboard.compat.proto.event_pb2 import Event
from tensorboard.compat.proto.summary_pb2 import HistogramProto, Summary
from tensorboard.plugins.histogram import summary_v2 as histograms
from tensorboard.plugins.hparams import summary_v2 as hparams
from tensorboard.plugins.scalar import summary_v2 as scalars
from tensorboard.plugins.text import summary_v2 as texts
from tensorboard.summary.writer.event_file_writer import EventFileWriter

from runyard.event_files.checksums import complete_records
from runyard.event_files.summaries import read_event
from runyard.store.database import Database
from runyard.store.run_labels import RunLabels
from runyard.tracking.event_files import EventFile, EventFiles, find_event_files, ingest_event_files
from runyard.tracking.metrics import read_metrics, read_points
from runyard.tracking.value_entries import read_entries
from runyard.wire.event_records import record

Write = Callable[..., None]


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    folder = tmp_path / "logs"
    folder.mkdir()
    return folder


@pytest.fixture
def write(logs: Path) -> Iterator[Write]:
    writers: dict[str, EventFileWriter] = {}

    def put(step: int, *values: Summary.Value, folder: str = "") -> None:
        if folder not in writers:
            writers[folder] = EventFileWriter(str(logs / folder))
        writers[folder].add_event(Event(wall_time=1000.0 + step, step=step, summary=Summary(value=list(values))))
        writers[folder].flush()

    yield put
    for writer in writers.values():
        writer.close()


def simple(tag: str, value: float) -> Summary.Value:
    return Summary.Value(tag=tag, simple_value=value)


def ingest_new(database: Database, logs: Path) -> int:
    stored, warnings = ingest_event_files(database, "r", find_event_files([("logs", logs)]))
    assert warnings == []
    return stored


def test_scalars_of_both_formats_are_read(database: Database, logs: Path, write: Write) -> None:
    for step in range(3):
        write(step, simple("loss", 0.5 / (step + 1)), *scalars.scalar_pb("acc", step / 4).value)
    assert ingest_new(database, logs) == 6
    points = read_points(database, "r", "logs/loss")
    assert points.steps.tolist() == [0, 1, 2]
    assert points.times.tolist() == [1000.0, 1001.0, 1002.0]
    assert points.values.tolist() == pytest.approx([0.5, 0.25, 1 / 6])
    assert read_metrics(database, ["r"])["r"]["logs/acc"] == [0.0, 0.25, 0.5]


def test_the_folder_is_part_of_the_name(database: Database, logs: Path, write: Write) -> None:
    write(1, simple("epoch_loss", 1.0), folder="train")
    write(1, simple("epoch_loss", 2.0), folder="validation")
    ingest_new(database, logs)
    assert read_metrics(database, ["r"])["r"] == {"logs/train/epoch_loss": 1.0, "logs/validation/epoch_loss": 2.0}


def test_histograms_of_both_formats_are_read(database: Database, logs: Path, write: Write) -> None:
    old = HistogramProto(min=-1, max=3, num=6, bucket_limit=[-2, 0, 2, 4], bucket=[0, 1, 2, 3])
    write(1, Summary.Value(tag="old", histo=old))
    write(2, *histograms.histogram_pb("new", np.array([0.0, 1.0, 1.0, 4.0]), buckets=4).value)
    ingest_new(database, logs)
    series = read_entries(database, "r", "logs/old")
    assert series["kind"] == "histogram"
    assert series["values"][0]["value"] == {"bin_edges": [-1.0, 0.0, 2.0, 3.0], "bin_counts": [1.0, 2.0, 3.0]}
    series = read_entries(database, "r", "logs/new")
    assert series["values"][0]["value"] == {"bin_edges": [0.0, 1.0, 2.0, 3.0, 4.0], "bin_counts": [1.0, 2.0, 0.0, 1.0]}


def test_texts_are_read(database: Database, logs: Path, write: Write) -> None:
    write(4, *texts.text_pb("sample", "Once <i>upon</i>").value)
    ingest_new(database, logs)
    series = read_entries(database, "r", "logs/sample")
    assert (series["kind"], series["values"][0]["value"]) == ("text", "Once <i>upon</i>")


@pytest.mark.parametrize("kind", ["float16", "float32", "float64", "int32", "int64", "uint8", "bool"])
def test_a_scalar_tensor_of_any_type_is_a_number(database: Database, logs: Path, write: Write, kind: str) -> None:
    from tensorboard.util.tensor_util import make_tensor_proto

    write(1, Summary.Value(tag="x", tensor=make_tensor_proto(np.array(1, kind))))
    number = True if kind == "bool" else 1
    write(2, Summary.Value(tag="x", tensor=make_tensor_proto(number, dtype=np.dtype(kind).type)))
    ingest_new(database, logs)
    assert read_metrics(database, ["r"])["r"]["logs/x"] == [1.0, 1.0]


def test_concurrent_and_repeated_ingestion_stores_each_event_once(database: Database, logs: Path, write: Write) -> None:
    for step in range(200):
        write(step, simple("loss", float(step)))
        if step % 17 == 0:
            threads = [threading.Thread(target=ingest_new, args=(database, logs)) for _ in range(4)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
    ingest_new(database, logs)
    assert ingest_new(database, logs) == 0
    assert read_metrics(database, ["r"])["r"]["logs/loss"] == [float(step) for step in range(200)]


def test_reading_resumes_at_any_byte(database: Database, tmp_path: Path) -> None:
    event = Event(wall_time=1.0, step=5, summary=Summary(value=[simple("loss", 1.0)])).SerializeToString()
    data = record(Event(wall_time=1.0, file_version="brain.Event:2").SerializeToString()) + record(event) * 20
    path = tmp_path / "events.out.tfevents.1"
    random.seed(7)
    size = 0
    while size < len(data):
        size = min(size + random.randrange(1, 60), len(data))
        path.write_bytes(data[:size])
        ingest_event_files(database, "r", [EventFile("logs/events.out.tfevents.1", path)])
    assert read_metrics(database, ["r"])["r"]["logs/loss"] == [1.0] * 20


def test_a_damaged_file_is_read_up_to_the_damage_with_a_warning(database: Database, tmp_path: Path) -> None:
    event = Event(wall_time=1.0, step=5, summary=Summary(value=[simple("loss", 1.0)])).SerializeToString()
    path = tmp_path / "events.out.tfevents.1"
    path.write_bytes(record(event) * 3 + b"\0" * 100)
    file = EventFile("logs/events.out.tfevents.1", path)
    stored, warnings = ingest_event_files(database, "r", [file])
    assert stored == 3
    assert warnings == [
        f"logs/events.out.tfevents.1 is damaged at byte {3 * len(record(event))}: the rest was not read"
    ]
    assert ingest_event_files(database, "r", [file])[0] == 0


def test_records_that_are_not_events_are_skipped(database: Database, tmp_path: Path) -> None:
    good = record(Event(wall_time=1.0, step=5, summary=Summary(value=[simple("loss", 1.0)])).SerializeToString())
    path = tmp_path / "events.out.tfevents.1"
    path.write_bytes(good + record(b"\xff\xff\xff") + record(b"") + good)
    assert ingest_event_files(database, "r", [EventFile("logs/events.out.tfevents.1", path)]) == (2, [])


def test_links_are_not_followed(database: Database, logs: Path, tmp_path: Path, write: Write) -> None:
    write(1, simple("secret", 1.0), folder="inside")
    elsewhere = tmp_path / "elsewhere"
    (logs / "inside").rename(elsewhere)
    (logs / "folder").symlink_to(elsewhere)
    (logs / "events.out.tfevents.9").symlink_to(next(elsewhere.iterdir()))
    assert list(find_event_files([("logs", logs)])) == []
    assert list(find_event_files([("linked", logs / "folder")])) == []


def test_a_running_run_is_ingested_repeatedly(database: Database, logs: Path, write: Write) -> None:
    event_files = EventFiles(database)
    assert event_files.ingest_new("r", lambda: [("logs", logs)]) == 0
    for step in range(5):
        write(step, simple("loss", float(step)))
        counts: list[int] = []
        while sum(counts) == 0:  # the next scan finds a new file
            counts.append(event_files.ingest_new("r", lambda: [("logs", logs)]))
        assert sum(counts) == 1
    event_files.forget("r")
    assert event_files.ingest_new("r", lambda: [("logs", logs)]) == 0
    assert read_metrics(database, ["r"])["r"]["logs/loss"] == [0.0, 1.0, 2.0, 3.0, 4.0]


@given(st.lists(st.binary(max_size=300), max_size=8), st.integers(0, 400), st.integers(0, 255))
@settings(max_examples=200, deadline=None)
def test_damage_and_truncation_are_distinguished(contents: list[bytes], position: int, byte: int) -> None:
    data = b"".join(map(record, contents))
    spans, damaged = complete_records(data)
    assert ([data[begin:end] for begin, end in spans], damaged) == (contents, None)
    if position < len(data) and data[position] != byte:
        broken = data[:position] + bytes([byte]) + data[position + 1 :]
        spans, damaged = complete_records(broken)
        assert damaged is not None
        assert damaged <= position
        assert [broken[begin:end] for begin, end in spans] == contents[: len(spans)]
        cut, damaged = complete_records(data[:position])
        assert [data[begin:end] for begin, end in cut] == contents[: len(cut)]
        assert damaged is None


@given(
    st.text(max_size=100), st.floats(width=32, allow_nan=False), st.integers(-(2**63), 2**63 - 1), st.floats(0, 1e10)
)
@settings(max_examples=300, deadline=None)
def test_scalars_round_trip(tag: str, value: float, step: int, time: float) -> None:
    event = Event(wall_time=time, step=step, summary=Summary(value=[simple(tag, value)]))
    values = list(read_event(event.SerializeToString()))
    assert [(v.tag, v.value, v.step, v.time) for v in values] == ([(tag, value, step, time)] if tag else [])


@given(st.binary(max_size=60), st.binary(max_size=3))
def test_other_data_gives_no_values_or_an_error(middle: bytes, end: bytes) -> None:
    for data in (middle, b"\x09" + middle, b"\x09" + b"\0" * 8 + b"\x10" + middle + end):
        with suppress(ValueError, struct.error):
            assert all(value.tag for value in read_event(data))


def test_hyperparameters_become_parameters_of_the_run(database: Database, logs: Path, write: Write) -> None:
    """Written as `SummaryWriter.add_hparams` does it: in a folder whose name is the time."""
    for folder, lr in (("1700000000.5", 0.1), ("1700000001.25", 0.2), ("second", 0.3)):
        write(0, *hparams.hparams_pb({"lr": lr, "layers": 3, "name": "cnn", "bias": False}).value, folder=folder)
        write(0, simple("hparam/accuracy", lr), folder=folder)
    assert ingest_new(database, logs) == 6
    assert ingest_new(database, logs) == 0
    assert RunLabels(database).params(["r"])["r"] == {
        "lr": "0.1",
        "logs/lr": "0.2",  # the run has another value of this name
        "logs/second/lr": "0.3",
        "layers": "3",
        "name": "cnn",
        "bias": "false",
    }
    assert read_points(database, "r", "logs/hparam/accuracy").values.tolist() == pytest.approx([0.1, 0.2])
    assert read_points(database, "r", "logs/second/hparam/accuracy").values.tolist() == pytest.approx([0.3])
