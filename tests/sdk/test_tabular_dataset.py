"""Tables, as far as they need no yard: how they are given to a run, shown, and what they leave to pandas."""

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


def test_what_the_error_of_a_table_as_an_argument_advises_is_taken(table: Any) -> None:
    with pytest.raises(UserErrorException, match="a TabularDataset cannot be passed directly as an argument") as caught:
        ScriptRunConfig(".", "train.py", ["--data", table])
    assert "dataset.as_named_input('name')" in caught.value.hint
    assert "as_mount" not in caught.value.hint
    assert ScriptRunConfig(".", "train.py", ["--data", table.as_named_input("name")]).arguments


def test_a_dataset_whose_source_a_script_is_not_told_does_not_show_an_empty_one(
    table: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert repr(table) == "TabularDataset(source=[https://example.org/digits.csv])"
    definition = {**to_json(table._definition), "sources": []}
    told = {"dataset_id": "1", "name": "digits", "version": 2, "definition": definition}
    about = {name: {"direct": True, "dataset": {**told, "name": name}} for name in ("digits", "")}
    monkeypatch.setenv(INPUTS, json.dumps(about))
    monkeypatch.setenv(f"{REFERENCE_VARIABLE_PREFIX}digits", str(tmp_path))
    given = datasets_of_this_script()
    assert repr(given["digits"]) == "TabularDataset(name='digits', version=2)"
    assert repr(given[""]) == "TabularDataset()"


@pytest.mark.parametrize(
    ("ask", "name", "way"),
    [
        (lambda t: t["x"], "dataset", "frame['column']"),
        (lambda t: t.filter(True), "TabularDataset.filter", "chooses rows"),
        (lambda t: t.with_timestamp_columns("time"), "TabularDataset.with_timestamp_columns", "by their time"),
        (lambda t: t.time_before(1), "TabularDataset.time_before", "by their time"),
        (lambda t: t.time_after(1), "TabularDataset.time_after", "by their time"),
        (lambda t: t.time_between(1, 2), "TabularDataset.time_between", "by their time"),
        (lambda t: t.time_recent(1), "TabularDataset.time_recent", "by their time"),
        (lambda t: t.get_profile(), "TabularDataset.get_profile", "describe"),
        (lambda t: t.get_profile_runs(), "TabularDataset.get_profile_runs", "describe"),
        (lambda t: t.submit_profile_run("local", None), "TabularDataset.submit_profile_run", "describe"),
        (lambda t: t.partition_by(["key"], None), "TabularDataset.partition_by", "partition_cols"),
        (lambda t: t.get_partition_key_values(), "TabularDataset.get_partition_key_values", "drop_duplicates"),
        (lambda t: t.to_dask_dataframe(), "TabularDataset.to_dask_dataframe", "from_pandas"),
        (lambda t: t.to_spark_dataframe(), "TabularDataset.to_spark_dataframe", "createDataFrame"),
    ],
)
def test_what_tables_leave_to_pandas_is_one_error_that_says_how(table: Any, ask: Any, name: str, way: str) -> None:
    with pytest.raises(UserErrorException) as caught:
        ask(table)
    assert caught.value.message.startswith(name)
    assert caught.value.message.endswith("is not available in this version")
    assert "dataset.to_pandas_dataframe()" in caught.value.hint
    assert way in caught.value.hint
