"""Equal requests have equal keys; a change of the packages changes the key."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runyard.environments.key import environment_key

BASE: dict[str, object] = {"kind": "venv", "python": "3.11", "platform": "linux-x86_64-glibc-2.36"}


def key(**more: object) -> str:
    return environment_key(**{**BASE, **more})


@given(st.permutations(["numpy>=1.2,<2", "six", "Scikit_Learn==1.2", "a @ https://example.org/a.whl"]))
def test_the_order_of_packages_does_not_matter(lines: list[str]) -> None:
    assert key(requirements=lines) == key(requirements=sorted(lines))


def test_different_spellings_of_a_package_are_equal() -> None:
    assert key(requirements=["Scikit_Learn >=1.2, <2"]) == key(requirements=["scikit-learn<2,>=1.2"])
    assert key(conda=["NumPy  1.2"]) == key(conda=["numpy 1.2"])


@pytest.mark.parametrize(
    "change",
    [
        {"kind": "conda"},
        {"python": "3.12"},
        {"platform": "linux-aarch64-glibc-2.36"},
        {"requirements": ["six==1.17.0"]},
        {"options": ["--pre"]},
        {"conda": ["six"]},
        {"channels": ["conda-forge"]},
        {"backend": "gpu"},
        {"stamps": ["/a.whl 1 2"]},
    ],
)
def test_every_input_changes_the_key(change: dict[str, object]) -> None:
    assert key(**change) != key()


def test_the_order_of_channels_matters() -> None:
    assert key(channels=["a", "b"]) != key(channels=["b", "a"])
