"""Validation and conversion of logged values: plain Python values, and numpy scalars converted to them."""

from __future__ import annotations

from runyard.context import format as layout
from runyard.errors import RunyardException, UserErrorException

TYPE_CHECKING = False  # importing typing takes longer than this module
if TYPE_CHECKING:
    from typing import Any, Union

    Plain = Union[float, int, bool, str, None]

_PLAIN = (float, int, bool, str, type(None))
_MAX_TIME_S = 1e11  # the year 5138
_COLLECTIONS = (list, tuple, range, dict, set, frozenset, type(_ for _ in ()))


def validate_name(name: Any) -> str:
    if not isinstance(name, str) or not name or len(name) > 255:
        raise UserErrorException(
            f"expected a metric name of 1 to 255 characters, got {shortened_repr(name)}", hint='run.log("loss", 0.5)'
        )
    try:
        name.encode()
    except UnicodeEncodeError:
        raise UserErrorException(f"the metric name {name!r} is not valid Unicode") from None
    return str(name)


def validate_step(step: Any) -> int:
    try:
        number = step.__index__()
    except AttributeError:
        number = None
    if not isinstance(number, int) or not -(2**63) < number < 2**63:
        raise UserErrorException(f"step must be a 64-bit integer, got {shortened_repr(step)}")
    return number


def validate_time(timestamp: Any) -> float:
    """Seconds since 1970. A datetime without a time zone is local time, as in Python."""
    moment = timestamp.timestamp() if callable(getattr(timestamp, "timestamp", None)) else timestamp
    is_plain, plain = to_plain(moment)
    if not is_plain or isinstance(plain, (bool, str)) or plain is None or not abs(plain) < _MAX_TIME_S:
        hint = "time.time(), or a datetime"
        if isinstance(plain, (int, float)) and _MAX_TIME_S <= plain < 1000 * _MAX_TIME_S:
            hint = f"this looks like milliseconds: pass {plain / 1000!r}"
        raise UserErrorException(f"timestamp must be in seconds since 1970, got {shortened_repr(timestamp)}", hint=hint)
    return float(plain)


def to_scalar(name: str, value: Any) -> Plain:
    """The value for ``log``: a value of an unsupported type is stored as its repr."""
    if isinstance(value, _COLLECTIONS):
        raise UserErrorException(
            f"metric {name!r}: log expects one value, got a {type(value).__name__}",
            hint="use log_list for a list, log_row or log_table for columns",
        )
    is_plain, plain = to_plain(value)
    return plain if is_plain else repr(value)


def validate_list(name: str, values: Any) -> list[Plain]:
    """The values for ``log_list``: any iterable. An unsupported type is refused before anything is written."""
    from collections.abc import Iterable, Mapping

    if isinstance(values, (str, bytes, Mapping)) or not isinstance(values, Iterable):
        raise RunyardException(
            f"metric {name!r}: log_list expects a list of values, got a {type(values).__name__}",
            hint="use log for one value",
        )
    return [_to_plain_or_raise(name, f"element {index}", value) for index, value in enumerate(values)]


def validate_row(name: str, columns: dict[str, Any]) -> dict[str, Plain]:
    if not columns:
        raise UserErrorException(f"metric {name!r}: log_row needs at least one column", hint="log_row(name, x=1, y=2)")
    return {
        _column_name(name, key): _to_plain_or_raise(name, f"column {key!r}", value) for key, value in columns.items()
    }


def validate_table(name: str, table: Any) -> dict[str, list[Plain]]:
    """The columns for ``log_table``, of equal length. Single values instead of lists are a table of one row."""
    from collections.abc import Iterable, Mapping

    if not isinstance(table, Mapping) or not table:
        raise UserErrorException(
            f"metric {name!r}: log_table expects a dict of columns, got {shortened_repr(table)}",
            hint='log_table(name, {"x": [1, 2], "y": [3, 4]})',
        )
    columns: dict[str, list[Plain]] = {}
    for key, values in table.items():
        is_list = isinstance(values, Iterable) and not isinstance(values, (str, bytes, Mapping))
        columns[_column_name(name, key)] = [
            _to_plain_or_raise(name, f"column {key!r}", value) for value in (values if is_list else [values])
        ]
    if len({len(values) for values in columns.values()}) > 1:
        lengths = ", ".join(f"{key!r} has {len(values)}" for key, values in columns.items())
        raise RunyardException(f"metric {name!r}: the columns of a table must have equal lengths, but {lengths}")
    return columns


def record_kind(value: Plain) -> int:
    if value is None:
        return layout.NONE
    if isinstance(value, bool):
        return layout.BOOL
    if isinstance(value, int):
        return layout.INT if -(2**63) <= value < 2**63 else layout.BIG_INT
    return layout.FLOAT if isinstance(value, float) else layout.TEXT


def to_plain(value: Any) -> tuple[bool, Plain]:
    """Convert a plain Python value, a subclass of one, or a numpy scalar.

    Returns:
        (True, the value), or (False, None) for any other type.
    """
    kind = type(value)
    if kind is int:
        _check_digits(value)
    if kind in _PLAIN:
        return True, value
    for base in (bool, int, float, str):  # subclasses: numpy's float64 and str_, IntEnum, ...
        if isinstance(value, base):
            return to_plain(base.__str__(value) if base is str else base(value))
    # numpy is recognized by name: importing it would slow down every script that has it installed but does not use it
    if kind.__module__ == "numpy" and kind.__name__ != "ndarray" and hasattr(value, "item"):
        item = value.item()
        if type(item) in _PLAIN:
            return to_plain(item)
    return False, None


def shortened_repr(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def _column_name(name: str, key: Any) -> str:
    if not isinstance(key, str):
        raise RunyardException(f"metric {name!r}: a column name must be a string, got {shortened_repr(key)}")
    return key


def _to_plain_or_raise(name: str, position: str, value: Any) -> Plain:
    is_plain, plain = to_plain(value)
    if not is_plain:
        raise RunyardException(
            f"metric {name!r}: {position} is a {type(value).__name__}, which cannot be stored as a metric value",
            hint="numbers, strings, booleans and None can; numpy scalars are converted",
        )
    return plain


def _check_digits(value: int) -> None:
    try:
        str(value)
    except ValueError:  # Python refuses to print integers of more than 4,300 digits
        raise RunyardException("an integer of more than 4,300 digits cannot be stored as a metric value") from None
