"""The gate: what the exported model answers against what the original answers, number by number."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Optional

from runyard.errors import OnnxExportException

DEFAULT_RTOL, DEFAULT_ATOL = 1e-3, 1e-5
HALF_RTOL, HALF_ATOL = 1e-2, 1e-3  # of float16 and bfloat16


@dataclass(frozen=True)
class Tolerance:
    """A value may be off by ``atol`` plus ``rtol`` of what is expected; ``share`` is of the output's own spread."""

    rtol: float = DEFAULT_RTOL
    atol: float = DEFAULT_ATOL
    share: float = 0.0


@dataclass(frozen=True)
class Worst:
    index: list[int]
    expected: Any
    got: Any


@dataclass(frozen=True)
class OutputParity:
    name: str
    of: int  # values that were compared
    different: int = 0  # of them, those further apart than allowed
    max_abs: float = 0.0
    max_rel: float = 0.0
    worst: Optional[Worst] = None  # the value that is furthest off
    problem: str = ""  # another shape, another type


@dataclass(frozen=True)
class CaseParity:
    name: str
    batch: Optional[int]
    outputs: list[OutputParity] = field(default_factory=list)
    problem: str = ""  # it could not be computed at all

    @property
    def passed(self) -> bool:
        return not self.problem and not any(one.different or one.problem for one in self.outputs)


@dataclass(frozen=True)
class Report:
    rtol: float
    atol: float
    share: float
    cases: list[CaseParity]

    @property
    def passed(self) -> bool:
        return all(case.passed for case in self.cases)

    @property
    def max_abs(self) -> float:
        return max((one.max_abs for case in self.cases for one in case.outputs), default=0.0)

    def as_json(self) -> dict[str, Any]:
        from runyard.spec.json import to_json

        cases = [{**to_json(case), "passed": case.passed} for case in self.cases]
        return {"passed": self.passed, "rtol": self.rtol, "atol": self.atol, "share": self.share, "cases": cases}

    def where(self) -> str:
        """The first thing that differs, in a sentence."""
        for case in self.cases:
            if case.problem:
                return f"for {case.name}: {case.problem}"
            for one in case.outputs:
                if one.problem:
                    return f"output {one.name!r} for {case.name}: {one.problem}"
                if one.different and one.worst is not None:
                    worst = one.worst
                    return (
                        f"output {one.name!r} for {case.name} at {worst.index}: expected {_short(worst.expected)}, "
                        f"got {_short(worst.got)}; {one.different:,} of {one.of:,} values are further apart than "
                        f"{self._allowed()}, by up to {_short(one.max_abs)} ({_short(one.max_rel)} relative)"
                    )
        return "nothing differs"

    def _allowed(self) -> str:
        if self.share:
            return f"{self.share:g} of the output's spread"
        return f"{self.atol:g} + {self.rtol:g} of what is expected"


def as_tolerance(given: Any, half: bool) -> Tolerance:
    """One number is both; a pair is (rtol, atol)."""
    if given is None:
        return Tolerance(HALF_RTOL, HALF_ATOL) if half else Tolerance()
    if isinstance(given, dict) and set(given) <= {"rtol", "atol"}:
        given = (given.get("rtol", DEFAULT_RTOL), given.get("atol", DEFAULT_ATOL))
    pair = list(given) if isinstance(given, (tuple, list)) else [given, given]
    if len(pair) != 2 or not all(isinstance(one, (int, float)) and 0 <= one < float("inf") for one in pair):
        raise OnnxExportException(
            f"tolerance takes a number or (rtol, atol), not {given!r}", hint="such as tolerance=1e-4"
        )
    return Tolerance(float(pair[0]), float(pair[1]))


def compare(
    name: str,
    batch: Optional[int],
    names: Sequence[str],
    expected: Sequence[Any],
    got: Sequence[Any],
    allowed: Tolerance,
) -> CaseParity:
    """``expected`` and ``got`` are numpy arrays, one for each output."""
    if len(expected) != len(got):
        return CaseParity(name, batch, problem=f"it has {len(got)} outputs, the original {len(expected)}")
    outputs = [_output(*one, allowed) for one in zip(names, expected, got)]
    return CaseParity(name, batch, outputs)


def _output(name: str, expected: Any, got: Any, allowed: Tolerance) -> OutputParity:
    import numpy as np

    if expected.shape != got.shape:
        return OutputParity(name, 0, problem=f"its shape is {list(got.shape)}, not {list(expected.shape)}")
    if expected.dtype.kind != got.dtype.kind:
        return OutputParity(name, 0, problem=f"its type is {got.dtype}, not {expected.dtype}")
    if not expected.size:
        return OutputParity(name, 0)
    wide = np.complex128 if expected.dtype.kind == "c" else np.float64
    right, seen = np.asarray(expected, wide), np.asarray(got, wide)
    same = (right == seen) | (np.isnan(right) & np.isnan(seen))
    with np.errstate(invalid="ignore", over="ignore", divide="ignore"):
        off = np.where(same, 0.0, np.abs(seen - right))
        off = np.where(np.isnan(off), np.inf, off)  # a number where there is none, or the reverse
        if expected.dtype.kind == "f":
            finite = right[np.isfinite(right)]
            spread = float(finite.max() - finite.min()) or float(np.abs(finite).max()) if finite.size else 0.0
            limit = allowed.atol + allowed.rtol * np.abs(right) + allowed.share * spread
            limit = np.where(np.isfinite(limit), limit, 0.0)
        else:
            limit = np.zeros(right.shape)  # whole numbers and truths are the same or they are not
        relative = np.where(off == 0.0, 0.0, off / np.where(right == 0.0, np.nan, np.abs(right)))
        beyond = off - limit
    worst = np.unravel_index(int(np.argmax(beyond)), beyond.shape)
    known = relative[np.isfinite(relative)]
    return OutputParity(
        name=name,
        of=int(right.size),
        different=int((beyond > 0).sum()),
        max_abs=_plain(off.max()),
        max_rel=_plain(known.max()) if known.size else 0.0,
        worst=Worst([int(place) for place in worst], _plain(expected[worst]), _plain(got[worst])),
    )


def _plain(value: Any) -> Any:
    """As JSON can hold it: it knows no infinity."""
    number = value.item() if hasattr(value, "item") else value
    if isinstance(number, complex):
        return str(number)
    if isinstance(number, float) and (number != number or number in (float("inf"), float("-inf"))):
        return str(number)
    return number


def _short(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)
