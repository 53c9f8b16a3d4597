"""Element-wise comparison of the outputs of the exported model and of the original."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Optional

from runyard.errors import OnnxExportException

DEFAULT_RTOL, DEFAULT_ATOL = 1e-3, 1e-5
HALF_RTOL, HALF_ATOL = 1e-2, 1e-3  # of float16 and bfloat16


@dataclass(frozen=True)
class Tolerance:
    """Accepted deviation: ``atol + rtol * expected + share * (value range of the output)``."""

    rtol: float = DEFAULT_RTOL
    atol: float = DEFAULT_ATOL
    share: float = 0.0


@dataclass(frozen=True)
class WorstValue:
    index: list[int]
    expected: Any
    got: Any


@dataclass(frozen=True)
class OutputParity:
    name: str
    of: int  # number of compared values
    different: int = 0  # number of values beyond the tolerance
    max_abs: float = 0.0
    max_rel: float = 0.0
    worst: Optional[WorstValue] = None  # the value with the largest deviation
    problem: str = ""  # a different shape or type


@dataclass(frozen=True)
class CaseParity:
    name: str
    batch: Optional[int]
    outputs: list[OutputParity] = field(default_factory=list)
    problem: str = ""  # the error, if it could not be computed

    @property
    def passed(self) -> bool:
        return not self.problem and not any(output.different or output.problem for output in self.outputs)


@dataclass(frozen=True)
class Report:
    rtol: float
    atol: float
    share: float
    cases: list[CaseParity]

    @property
    def passed(self) -> bool:
        return all(case.passed for case in self.cases)

    def as_json(self) -> dict[str, Any]:
        from runyard.spec.json import to_json

        cases = [{**to_json(case), "passed": case.passed} for case in self.cases]
        return {"passed": self.passed, "rtol": self.rtol, "atol": self.atol, "share": self.share, "cases": cases}

    def first_difference(self) -> str:
        """Describe the first difference in a sentence."""
        for case in self.cases:
            if case.problem:
                return f"for {case.name}: {case.problem}"
            for output in case.outputs:
                if output.problem:
                    return f"output {output.name!r} for {case.name}: {output.problem}"
                if output.different and output.worst is not None:
                    worst = output.worst
                    return (
                        f"output {output.name!r} for {case.name} at {worst.index}: expected {_short(worst.expected)}, "
                        f"got {_short(worst.got)}; {output.different:,} of {output.of:,} values exceed the tolerance "
                        f"({self._tolerance_text()}), by up to {_short(output.max_abs)} "
                        f"({_short(output.max_rel)} relative)"
                    )
        return "no difference"

    def _tolerance_text(self) -> str:
        if self.share:
            return f"{self.share:g} of the output's value range"
        return f"{self.atol:g} + {self.rtol:g} of the expected value"


def as_tolerance(value: Any, is_half_precision: bool) -> Tolerance:
    """Convert a number (rtol and atol) or a pair (rtol, atol)."""
    if value is None:
        return Tolerance(HALF_RTOL, HALF_ATOL) if is_half_precision else Tolerance()
    if isinstance(value, dict) and set(value) <= {"rtol", "atol"}:
        value = (value.get("rtol", DEFAULT_RTOL), value.get("atol", DEFAULT_ATOL))
    pair = list(value) if isinstance(value, (tuple, list)) else [value, value]
    if len(pair) != 2 or not all(isinstance(number, (int, float)) and 0 <= number < float("inf") for number in pair):
        raise OnnxExportException(
            f"tolerance must be a number or (rtol, atol), got {value!r}", hint="such as tolerance=1e-4"
        )
    return Tolerance(float(pair[0]), float(pair[1]))


def compare(
    name: str,
    batch: Optional[int],
    names: Sequence[str],
    expected: Sequence[Any],
    got: Sequence[Any],
    tolerance: Tolerance,
) -> CaseParity:
    """Compare numpy arrays, one per output."""
    if len(expected) != len(got):
        return CaseParity(name, batch, problem=f"expected {len(expected)} outputs, got {len(got)}")
    outputs = [_compare_output(*output, tolerance) for output in zip(names, expected, got)]
    return CaseParity(name, batch, outputs)


def _compare_output(name: str, expected: Any, got: Any, tolerance: Tolerance) -> OutputParity:
    import numpy as np

    if expected.shape != got.shape:
        return OutputParity(name, 0, problem=f"expected shape {list(expected.shape)}, got {list(got.shape)}")
    if expected.dtype.kind != got.dtype.kind:
        return OutputParity(name, 0, problem=f"expected type {expected.dtype}, got {got.dtype}")
    if not expected.size:
        return OutputParity(name, 0)
    wide = np.complex128 if expected.dtype.kind == "c" else np.float64
    reference, actual = np.asarray(expected, wide), np.asarray(got, wide)
    equal = (reference == actual) | (np.isnan(reference) & np.isnan(actual))
    with np.errstate(invalid="ignore", over="ignore", divide="ignore"):
        deviation = np.where(equal, 0.0, np.abs(actual - reference))
        deviation = np.where(np.isnan(deviation), np.inf, deviation)  # only one of the two is NaN
        if expected.dtype.kind == "f":
            finite = reference[np.isfinite(reference)]
            value_range = float(finite.max() - finite.min()) or float(np.abs(finite).max()) if finite.size else 0.0
            limit = tolerance.atol + tolerance.rtol * np.abs(reference) + tolerance.share * value_range
            limit = np.where(np.isfinite(limit), limit, 0.0)
        else:
            limit = np.zeros(reference.shape)  # integers and booleans must be equal
        relative = np.where(deviation == 0.0, 0.0, deviation / np.where(reference == 0.0, np.nan, np.abs(reference)))
        excess = deviation - limit
    worst = np.unravel_index(int(np.argmax(excess)), excess.shape)
    finite_relative = relative[np.isfinite(relative)]
    return OutputParity(
        name=name,
        of=int(reference.size),
        different=int((excess > 0).sum()),
        max_abs=_plain(deviation.max()),
        max_rel=_plain(finite_relative.max()) if finite_relative.size else 0.0,
        worst=WorstValue([int(index) for index in worst], _plain(expected[worst]), _plain(got[worst])),
    )


def _plain(value: Any) -> Any:
    """Convert to a JSON value; JSON has no infinity and no NaN."""
    number = value.item() if hasattr(value, "item") else value
    is_json = not isinstance(number, complex) and not (isinstance(number, float) and not math.isfinite(number))
    return number if is_json else str(number)


def _short(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)
