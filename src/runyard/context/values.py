"""What may be logged, and as what: plain Python values, with numpy's scalars turned into them."""

from __future__ import annotations

from runyard.context import format as layout
from runyard.errors import RunyardException, UserErrorException

TYPE_CHECKING = False  # typing itself takes longer to import than this module
if TYPE_CHECKING:
    from typing import Any, Union

    Plain = Union[float, int, bool, str, None]

_PLAIN = (float, int, bool, str, type(None))
_LATEST_S = 1e11  # the year 5138
_MANY = (list, tuple, range, dict, set, frozenset, type(_ for _ in ()))


def checked_name(name: Any) -> str:
    if not isinstance(name, str) or not name or len(name) > 255:
        raise UserErrorException(
            f"a metric's name is a text of 1 to 255 characters, not {_shown(name)}", hint='run.log("loss", 0.5)'
        )
    try:
        name.encode()
    except UnicodeEncodeError:
        raise UserErrorException(f"a metric's name must be valid text, not {name!r}") from None
    return str(name)


def checked_step(step: Any) -> int:
    try:
        number = step.__index__()
    except AttributeError:
        number = None
    if not isinstance(number, int) or not -(2**63) < number < 2**63:
        raise UserErrorException(f"a step is a whole number of 64 bits, not {_shown(step)}")
    return number


def checked_time(timestamp: Any) -> float:
    """Seconds since 1970; of a datetime without a zone, local time is meant, as Python does."""
    moment = timestamp.timestamp() if callable(getattr(timestamp, "timestamp", None)) else timestamp
    known, plain = plain_value(moment)
    if not known or isinstance(plain, (bool, str)) or plain is None or not abs(plain) < _LATEST_S:
        hint = "time.time(), or a datetime"
        if isinstance(plain, (int, float)) and _LATEST_S <= plain < 1000 * _LATEST_S:
            hint = f"that looks like milliseconds: give {plain / 1000!r}"
        raise UserErrorException(f"a timestamp is in seconds since 1970, not {_shown(timestamp)}", hint=hint)
    return float(plain)


def scalar(name: str, value: Any) -> Plain:
    """For ``log``: a value of a type that is not known is kept as its repr text."""
    if isinstance(value, _MANY):
        raise UserErrorException(
            f"metric {name!r}: log takes one value, not a {type(value).__name__}",
            hint="use log_list for a list, log_row or log_table for columns",
        )
    known, plain = plain_value(value)
    return plain if known else repr(value)


def list_of(name: str, values: Any) -> list[Plain]:
    """For ``log_list``: any iterable of values; a type that is not known is refused before anything is written."""
    from collections.abc import Iterable, Mapping

    if isinstance(values, (str, bytes, Mapping)) or not isinstance(values, Iterable):
        raise RunyardException(
            f"metric {name!r}: log_list takes a list of values, not a {type(values).__name__}",
            hint="use log for one value",
        )
    return [_strict(name, f"element {index}", value) for index, value in enumerate(values)]


def kind_of(value: Plain) -> int:
    if value is None:
        return layout.NONE
    if isinstance(value, bool):
        return layout.BOOL
    if isinstance(value, int):
        return layout.INT if -(2**63) <= value < 2**63 else layout.BIG_INT
    return layout.FLOAT if isinstance(value, float) else layout.TEXT


def row_of(name: str, columns: dict[str, Any]) -> dict[str, Plain]:
    if not columns:
        raise UserErrorException(f"metric {name!r}: log_row needs at least one column", hint="log_row(name, x=1, y=2)")
    return {_column(name, key): _strict(name, f"column {key!r}", value) for key, value in columns.items()}


def table_of(name: str, table: Any) -> dict[str, list[Plain]]:
    """For ``log_table``: columns of equal length. Plain values instead of lists are a table of one row."""
    from collections.abc import Iterable, Mapping

    if not isinstance(table, Mapping) or not table:
        raise UserErrorException(
            f"metric {name!r}: log_table takes a dict of columns, not {_shown(table)}",
            hint='log_table(name, {"x": [1, 2], "y": [3, 4]})',
        )
    columns: dict[str, list[Plain]] = {}
    for key, values in table.items():
        many = isinstance(values, Iterable) and not isinstance(values, (str, bytes, Mapping))
        columns[_column(name, key)] = [
            _strict(name, f"column {key!r}", value) for value in (values if many else [values])
        ]
    lengths = {key: len(values) for key, values in columns.items()}
    if len(set(lengths.values())) > 1:
        told = ", ".join(f"{key!r} has {length}" for key, length in lengths.items())
        raise RunyardException(f"metric {name!r}: the columns of a table must be equally long, but {told}")
    return columns


def _column(name: str, key: Any) -> str:
    if not isinstance(key, str):
        raise RunyardException(f"metric {name!r}: a column's name is a text, not {_shown(key)}")
    return key


def _strict(name: str, where: str, value: Any) -> Plain:
    known, plain = plain_value(value)
    if not known:
        raise RunyardException(
            f"metric {name!r}: {where} is a {type(value).__name__}, which cannot be kept as a metric's value",
            hint="numbers, texts, booleans and None can; numpy's scalars are converted",
        )
    return plain


def plain_value(value: Any) -> tuple[bool, Plain]:
    """Whether it is a plain value, or one of numpy's, and then which."""
    kind = type(value)
    if kind in _PLAIN:
        return _kept_int(value) if kind is int else (True, value)
    for base in (bool, int, float, str):  # subclasses: numpy's float64 and str_, IntEnum, …
        if isinstance(value, base):
            return plain_value(base.__str__(value) if base is str else base(value))
    # numpy is known by its name: importing it would cost every script that has it installed and does not use it
    if kind.__module__ == "numpy" and kind.__name__ != "ndarray" and hasattr(value, "item"):
        inner = value.item()
        if type(inner) in _PLAIN:
            return plain_value(inner)
    return False, None


def _kept_int(value: int) -> tuple[bool, Plain]:
    try:
        str(value)
    except ValueError:  # Python refuses to write out integers of more than 4,300 digits
        raise RunyardException("an integer of more than 4,300 digits cannot be kept as a metric's value") from None
    return True, value


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
