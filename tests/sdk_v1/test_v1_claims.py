"""Every behavior of the SDK v1 that its notebooks rely on is claimed by a test, whose docstring begins with its number.

"B5.31: …" is behavior 31 of section 5. The sections and their numbers are those below.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path

TESTS = Path(__file__).parents[1]
SECTIONS = {  # title, and the numbers from the first to the last
    1: ("Workspace", 1, 6),
    2: ("Compute targets", 7, 13),
    3: ("Datastores and data references", 14, 20),
    4: ("Datasets", 21, 22),
    5: ("RunConfiguration, Environment, CondaDependencies, ScriptRunConfig", 23, 29),
    6: ("Estimators", 30, 40),
    7: ("Distributed runs", 41, 47),
    8: ("Submission, status, waiting", 48, 55),
    9: ("The run seen from inside the script", 56, 59),
    10: ("Metrics", 60, 67),
    11: ("Files, outputs, snapshots", 68, 76),
    12: ("Details, tags, properties, children, queries", 77, 82),
    13: ("HyperDrive", 83, 93),
    14: ("Models and web services", 94, 103),
    15: ("TensorBoard, widgets, telemetry, MLflow", 104, 108),
    16: ("Exceptions", 109, 109),
}
# Intended deviations; the claiming test checks the behavior of Runyard.
DEVIATIONS = {
    1: "without any config.json, Workspace.from_config() is the yard of this machine, and no error",
    4: "the default datastore is a folder of the yard, and says so as its type",
    29: "a new environment has no example variable",
    31: "a notebook as entry script is refused, whatever is installed",
    63: "numpy.int64 comes back as a number, where the SDK v1 kept its repr",
    67: "nothing is buffered, so that there is nothing to flush",
    74: "a second snapshot is tolerated",
    75: "there is no limit of 300 MB and 2000 files; the biggest are named in a warning",
    84: "a sweep may run on the machine of the yard",
    86: "a flag without a value does not confuse which arguments a sweep replaces",
    107: "nothing is collected, and that is what is printed",
}


def claims() -> set[tuple[int, int]]:
    numbers = set()
    for path in TESTS.rglob("test_*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
                docstring = ast.get_docstring(node) or ""
                beginning = re.match(r"(B\d+\.\d+)(, B\d+\.\d+)*(?:[:.]|$)", docstring)
                numbers |= {
                    (int(section), int(number))
                    for section, number in re.findall(r"B(\d+)\.(\d+)", beginning[0] if beginning else "")
                }
    return numbers


def test_every_behavior_is_claimed_by_a_test() -> None:
    claimed = {number for _, number in claims()}
    assert [number for number in range(1, 110) if number not in claimed] == []


def test_a_claim_names_the_section_of_its_number() -> None:
    wrong = [f"B{s}.{n}" for s, n in sorted(claims()) if s not in SECTIONS or not SECTIONS[s][1] <= n <= SECTIONS[s][2]]
    assert wrong == []


def test_deviations_are_among_the_behaviors() -> None:
    assert set(DEVIATIONS) <= {n for _, first, last in SECTIONS.values() for n in range(first, last + 1)}
