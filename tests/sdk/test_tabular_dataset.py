"""Tables, as far as they need no yard: how they are datasets to a run, shown, and what they leave to pandas."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from runyard import Dataset, ScriptRunConfig
from runyard.errors import UserErrorException
from runyard.sdk.run.inputs import INPUTS, datasets_of_this_script
from runyard.spec.data import REFERENCE_VARIABLE_PREFIX
from runyard.spec.json import to_json


@pytest.fixture
def table() -> Any:
    return Dataset.Tabular.from_delimited_files("https://example.org/digits.csv", validate=False)


def test_the_advice_for_a_table_as_an_argument_works(table: Any) -> None:
    with pytest.raises(UserErrorException, match="a TabularDataset cannot be passed directly as an argument") as caught:
        ScriptRunConfig(".", "train.py", ["--data", table])
    assert "dataset.as_named_input('name')" in caught.value.hint
    assert "as_mount" not in caught.value.hint
    assert ScriptRunConfig(".", "train.py", ["--data", table.as_named_input("name")]).arguments


def test_a_dataset_without_its_source_does_not_look_empty(
    table: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert repr(table) == "TabularDataset(source=[https://example.org/digits.csv])"
    definition = {**to_json(table._definition), "sources": []}
    view = {"dataset_id": "1", "name": "digits", "version": 2, "definition": definition}
    entries = {name: {"direct": True, "dataset": {**view, "name": name}} for name in ("digits", "")}
    monkeypatch.setenv(INPUTS, json.dumps(entries))
    monkeypatch.setenv(f"{REFERENCE_VARIABLE_PREFIX}digits", str(tmp_path))
    datasets = datasets_of_this_script()
    assert repr(datasets["digits"]) == "TabularDataset(name='digits', version=2)"
    assert repr(datasets[""]) == "TabularDataset()"


@pytest.mark.parametrize(
    ("ask", "name", "way"),
    [
        (lambda t: t["x"], "dataset", "frame['column']"),
        (lambda t: t.filter(True), "TabularDataset.filter", "selects rows"),
        (lambda t: t.with_timestamp_columns("time"), "TabularDataset.with_timestamp_columns", "by time"),
        (lambda t: t.time_before(1), "TabularDataset.time_before", "by time"),
        (lambda t: t.time_after(1), "TabularDataset.time_after", "by time"),
        (lambda t: t.time_between(1, 2), "TabularDataset.time_between", "by time"),
        (lambda t: t.time_recent(1), "TabularDataset.time_recent", "by time"),
        (lambda t: t.get_profile(), "TabularDataset.get_profile", "describe"),
        (lambda t: t.get_profile_runs(), "TabularDataset.get_profile_runs", "describe"),
        (lambda t: t.submit_profile_run("local", None), "TabularDataset.submit_profile_run", "describe"),
        (lambda t: t.partition_by(["key"], None), "TabularDataset.partition_by", "partition_cols"),
        (lambda t: t.get_partition_key_values(), "TabularDataset.get_partition_key_values", "drop_duplicates"),
        (lambda t: t.to_dask_dataframe(), "TabularDataset.to_dask_dataframe", "from_pandas"),
        (lambda t: t.to_spark_dataframe(), "TabularDataset.to_spark_dataframe", "createDataFrame"),
    ],
)
def test_unsupported_table_methods_name_the_pandas_equivalent(table: Any, ask: Any, name: str, way: str) -> None:
    with pytest.raises(UserErrorException) as caught:
        ask(table)
    assert caught.value.message.startswith(name)
    assert caught.value.message.endswith("is not available in this version")
    assert "dataset.to_pandas_dataframe()" in caught.value.hint
    assert way in caught.value.hint
