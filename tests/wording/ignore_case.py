"""Pytest plugin: ``pytest.raises(match=…)`` ignores case, so that error tests also run with upper-case messages."""

from __future__ import annotations

import re
from typing import Any

import pytest

_raises = pytest.raises


def _raises_ignoring_case(*args: Any, match: Any = None, **kwargs: Any) -> Any:
    if match is not None:
        kwargs["match"] = re.compile(match, re.IGNORECASE) if isinstance(match, str) else match
    return _raises(*args, **kwargs)


pytest.raises = _raises_ignoring_case  # type: ignore[assignment]
