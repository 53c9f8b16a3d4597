"""Work orders on disk, including those of another version."""

from __future__ import annotations

import json
from pathlib import Path

from runyard.launch.order import Node, WorkOrder, read_order
from runyard.spec.json import to_json


def test_an_order_is_read_back_unchanged(tmp_path: Path) -> None:
    order = WorkOrder("digits_1", "/runs/digits_1", ("python", "train.py"), {"A": "1"}, nodes=(Node("n1"), Node("n2")))
    (tmp_path / "order.json").write_text(json.dumps(to_json(order)))
    assert read_order(tmp_path / "order.json") == order


def test_unknown_fields_of_another_version_are_ignored(tmp_path: Path) -> None:
    order = WorkOrder("digits_1", "/runs/digits_1", ("python", "train.py"))
    fields = {**to_json(order), "unknown": [1, 2]}
    del fields["read_only"]
    (tmp_path / "order.json").write_text(json.dumps(fields))
    assert read_order(tmp_path / "order.json") == order
