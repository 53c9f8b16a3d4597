"""Orders as agents and yards find them: also one of another version."""

from __future__ import annotations

import json
from pathlib import Path

from runyard.launch.order import Node, WorkOrder, read_order
from runyard.spec.json import to_json


def test_an_order_comes_back_as_it_was_written(tmp_path: Path) -> None:
    order = WorkOrder("digits_1", "/runs/digits_1", ("python", "train.py"), {"A": "1"}, nodes=(Node("n1"), Node("n2")))
    (tmp_path / "order.json").write_text(json.dumps(to_json(order)))
    assert read_order(tmp_path / "order.json") == order


def test_what_another_version_wrote_into_an_order_is_passed_over(tmp_path: Path) -> None:
    order = WorkOrder("digits_1", "/runs/digits_1", ("python", "train.py"))
    said = {**to_json(order), "of_tomorrow": [1, 2]}
    del said["read_only"]
    (tmp_path / "order.json").write_text(json.dumps(said))
    assert read_order(tmp_path / "order.json") == order
