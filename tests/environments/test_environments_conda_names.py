"""Conda specifications are translated to PyPI requirements."""

from __future__ import annotations

import pytest

from runyard.environments import conda_names
from runyard.errors import EnvironmentException


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("numpy", "numpy"),
        ("numpy=1.26", "numpy==1.26.*"),
        ("numpy=1.26.*", "numpy==1.26.*"),
        ("numpy==1.26.4", "numpy==1.26.4"),
        ("numpy=1.26.4=py311h64a7726_0", "numpy==1.26.4"),
        ("numpy 1.26.4 py311_0", "numpy==1.26.4"),
        ("numpy 1.26.*", "numpy==1.26.*"),
        ("numpy>=1.2", "numpy>=1.2"),
        ("numpy >=1.2, <2", "numpy>=1.2,<2"),
        ("numpy!=1.3", "numpy!=1.3"),
        ("conda-forge::numpy=1.26", "numpy==1.26.*"),
        ("numpy[version='>=1.2']", "numpy>=1.2"),
        ("NumPy", "numpy"),
        ("numpy=*", "numpy"),
        ("pytorch=2.1", "torch==2.1.*"),
        ("pytorch-cpu", "torch"),
        ("tensorflow-gpu=2.1", "tensorflow==2.1.*"),
    ],
)
def test_a_conda_specification_is_translated(text: str, line: str) -> None:
    assert conda_names.to_pypi(conda_names.parse(text)) == line


@pytest.mark.parametrize("text", ["numpy=1.2|1.3", "numpy=what is this", "=1.2", ""])
def test_an_invalid_specification_is_refused(text: str) -> None:
    with pytest.raises(EnvironmentException, match=r"conda package"):
        conda_names.parse(text)
