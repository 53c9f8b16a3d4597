"""``input_schema`` and ``output_schema``: what a scoring function takes and gives, said by samples.

The names are those that scripts know from ``inference_schema``. A body that does not fit is refused with the reason,
before the function is called.
"""

from __future__ import annotations

import datetime
import functools
import json
from collections.abc import Callable
from typing import Any, Optional

_SIGNATURE = "_runyard_signature"
_JSON_TYPES: dict[type, str] = {bool: "boolean", int: "integer", float: "number", str: "string"}


class Mismatch(Exception):
    """What was sent is not what the sample says."""


class Signature:
    def __init__(self) -> None:
        self.inputs: dict[str, Any] = {}
        self.output: Any = None

    def arguments(self, body: bytes) -> dict[str, Any]:
        """For the function, from the body of a request. Raises Mismatch."""
        try:
            given = json.loads(body)
        except (ValueError, RecursionError) as error:
            raise Mismatch(f"the body is not JSON: {error}") from error
        if not isinstance(given, dict):
            raise Mismatch(f"the body must be an object with {_list(self.inputs)}")
        absent = [name for name, kind in self.inputs.items() if name not in given and not _optional(kind)]
        if absent:
            raise Mismatch(f"the body lacks {_list(absent)}")
        unknown = [name for name in given if name not in self.inputs]
        if unknown:
            raise Mismatch(f"the function takes no {_list(unknown)}, but {_list(self.inputs)}")
        return {name: _converted(self.inputs[name], value, name) for name, value in given.items()}

    def input_schema(self) -> dict[str, Any]:
        properties = {name: kind.input_to_swagger() for name, kind in self.inputs.items()}
        needed = [name for name, kind in self.inputs.items() if not _optional(kind)]
        described: dict[str, Any] = {"type": "object", "properties": properties, "additionalProperties": False}
        if needed:
            described["required"] = needed
        described["example"] = {name: part.get("example") for name, part in properties.items()}
        return described


def of(function: Callable[..., Any]) -> Optional[Signature]:
    """None when it takes the text of the request."""
    signature = getattr(function, _SIGNATURE, None)
    return signature if isinstance(signature, Signature) and signature.inputs else None


def output_of(function: Callable[..., Any]) -> Any:
    signature = getattr(function, _SIGNATURE, None)
    return signature.output if isinstance(signature, Signature) else None


def input_schema(
    param_name: str, param_type: Any, convert_to_provided_type: bool = True, optional: bool = False
) -> Any:
    if not isinstance(param_type, AbstractParameterType):
        raise TypeError(f"param_type of {param_name!r} must be one of the parameter types, not {param_type!r}")
    param_type.converts, param_type.optional = convert_to_provided_type, optional

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        return _decorated(function, lambda signature: signature.inputs.update({param_name: param_type}))

    return decorate


def output_schema(output_type: Any) -> Any:
    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        return _decorated(function, lambda signature: setattr(signature, "output", output_type))

    return decorate


class AbstractParameterType:
    """``converts`` and ``optional`` are set by the decorator."""

    converts = True
    optional = False

    def __init__(self, sample_input: Any) -> None:
        self.sample_input = sample_input
        self.sample_data_type = type(sample_input)

    def deserialize_input(self, input_data: Any) -> Any:
        return input_data

    def input_to_swagger(self) -> dict[str, Any]:
        return {}


class StandardPythonParameterType(AbstractParameterType):
    def deserialize_input(self, input_data: Any) -> Any:
        return _of_sample(self.sample_input, input_data)

    def input_to_swagger(self) -> dict[str, Any]:
        return _swagger(self.sample_input)


class NumpyParameterType(AbstractParameterType):
    def __init__(self, input_sample: Any, enforce_column_type: bool = True, enforce_shape: bool = True) -> None:
        super().__init__(input_sample)
        self.enforce_column_type, self.enforce_shape = enforce_column_type, enforce_shape

    def deserialize_input(self, input_data: Any) -> Any:
        import numpy

        sample = self.sample_input
        if self.enforce_column_type:
            _expect_items(input_data, sample.dtype)
        try:
            with numpy.errstate(over="ignore"):
                array = numpy.array(input_data, dtype=sample.dtype if self.enforce_column_type else None)
        except (ValueError, TypeError, OverflowError) as error:
            raise Mismatch(f"it is not an array of {sample.dtype}: {error}") from error
        if array.dtype == object:
            raise Mismatch("its rows are not of the same length")
        if sample.ndim > 1 and array.shape == (0,):
            array = array.reshape(0, *sample.shape[1:])  # no rows
        if self.enforce_shape and (array.ndim != sample.ndim or array.shape[1:] != sample.shape[1:]):
            raise Mismatch(f"its shape is {list(array.shape)}, and {['any', *sample.shape[1:]]} is taken")
        return array

    def input_to_swagger(self) -> dict[str, Any]:
        sample = self.sample_input
        item: dict[str, Any] = {**_item(sample.dtype.kind), **_range(sample.dtype)}
        for count in reversed(sample.shape):
            item = {"type": "array", "items": item, "minItems": int(count), "maxItems": int(count)}
        if sample.ndim:
            item.pop("minItems"), item.pop("maxItems")  # any number of rows
        return {**item, "example": sample.tolist()}


class PandasParameterType(AbstractParameterType):
    def __init__(
        self,
        input_sample: Any,
        enforce_column_type: bool = True,
        enforce_shape: bool = True,
        apply_column_names: bool = False,
        orient: str = "records",
    ) -> None:
        super().__init__(input_sample)
        self.enforce_column_type, self.enforce_shape = enforce_column_type, enforce_shape
        self.apply_column_names, self.orient = apply_column_names, orient

    def deserialize_input(self, input_data: Any) -> Any:
        import pandas

        sample = self.sample_input
        try:
            if self.orient == "split" and isinstance(input_data, dict):
                frame = pandas.DataFrame(**{k: input_data[k] for k in ("data", "columns", "index") if k in input_data})
            else:
                frame = pandas.DataFrame(input_data)
        except (ValueError, TypeError, AttributeError) as error:
            raise Mismatch(f"it is not a table: {error}") from error
        if self.enforce_shape and len(frame.columns) != len(sample.columns):
            raise Mismatch(f"it has {len(frame.columns)} columns, and {len(sample.columns)} are taken")
        if self.apply_column_names:
            frame.columns = sample.columns
        absent = [str(name) for name in sample.columns if name not in frame.columns]
        if absent:
            raise Mismatch(f"its columns {_list(absent)} are missing")
        if self.enforce_column_type:
            try:
                frame = frame.astype({name: sample[name].dtype for name in sample.columns})
            except (ValueError, TypeError) as error:
                raise Mismatch(f"a column is of another type: {error}") from error
        return frame

    def input_to_swagger(self) -> dict[str, Any]:
        sample = self.sample_input
        example = json.loads(sample.to_json(orient=self.orient, date_format="iso"))
        if self.orient != "records":
            return {"type": "object", "example": example}
        columns = {str(name): _item(sample[name].dtype.kind) for name in sample.columns}
        row = {"type": "object", "properties": columns, "required": list(columns)}
        return {"type": "array", "items": row, "example": example}


class SparkParameterType(PandasParameterType):
    """There is no Spark here: a script gets the table as a pandas one."""


def _decorated(function: Callable[..., Any], note: Callable[[Signature], None]) -> Callable[..., Any]:
    signature = getattr(function, _SIGNATURE, None)
    if signature is None:

        @functools.wraps(function)
        def called(*args: Any, **kwargs: Any) -> Any:
            return function(*args, **kwargs)

        signature = Signature()
        setattr(called, _SIGNATURE, signature)
        note(signature)
        return called
    note(signature)
    return function


def _converted(kind: Any, value: Any, name: str) -> Any:
    if not kind.converts:
        return value
    try:
        return kind.deserialize_input(value)
    except Mismatch as why:
        raise Mismatch(f"{name!r}: {why}") from why
    except (ValueError, TypeError, KeyError) as error:  # of a parameter type that the script defines itself
        raise Mismatch(f"{name!r}: {error}") from error


def _of_sample(sample: Any, value: Any) -> Any:
    if isinstance(sample, AbstractParameterType):
        return sample.deserialize_input(value)
    if sample is None:
        return value
    if isinstance(sample, dict):
        if not isinstance(value, dict):
            raise Mismatch("an object is taken")
        absent = [name for name in sample if name not in value]
        if absent:
            raise Mismatch(f"it lacks {_list(absent)}")
        return {name: _of_sample(sample.get(name), item) for name, item in value.items()}
    if isinstance(sample, (list, tuple)):
        if not isinstance(value, list):
            raise Mismatch("a list is taken")
        return [_of_sample(sample[0], item) for item in value] if sample else value
    if isinstance(sample, bool):
        return _expect(value, isinstance(value, bool), "true or false")
    if isinstance(sample, int):
        return _expect(value, isinstance(value, int) and not isinstance(value, bool), "a whole number")
    if isinstance(sample, float):
        return float(_expect(value, isinstance(value, (int, float)) and not isinstance(value, bool), "a number"))
    if isinstance(sample, datetime.date):
        try:
            return type(sample).fromisoformat(str(value).replace("Z", "+00:00"))
        except ValueError as error:
            raise Mismatch(str(error)) from error
    return _expect(value, isinstance(value, str) or not isinstance(sample, str), "a text")


def _expect(value: Any, fits: bool, what: str) -> Any:
    if not fits:
        raise Mismatch(f"{what} is taken, not {json.dumps(value)[:60]}")
    return value


def _swagger(sample: Any) -> dict[str, Any]:
    if isinstance(sample, AbstractParameterType):
        return sample.input_to_swagger()
    if isinstance(sample, dict):
        parts = {str(name): _swagger(item) for name, item in sample.items()}
        example = {name: part.get("example") for name, part in parts.items()}
        return {"type": "object", "properties": parts, "required": list(parts), "example": example}
    if isinstance(sample, (list, tuple)):
        item = _swagger(sample[0]) if sample else {}
        return {"type": "array", "items": item, "example": [_swagger(one).get("example") for one in sample]}
    if isinstance(sample, datetime.datetime):
        return {"type": "string", "format": "date-time", "example": sample.isoformat()}
    if isinstance(sample, datetime.date):
        return {"type": "string", "format": "date", "example": sample.isoformat()}
    kind = next((word for python, word in _JSON_TYPES.items() if isinstance(sample, python)), None)
    return {"type": kind, "example": sample} if kind else {}


def _item(kind: str) -> dict[str, Any]:
    """Of a numpy type; whole numbers are numbers too, and text that is a number is taken as one."""
    return {"b": {"type": "boolean"}, "i": {"type": "integer"}, "u": {"type": "integer"}}.get(
        kind, {"type": "number"} if kind == "f" else {}
    )


def _range(dtype: Any) -> dict[str, int]:
    if dtype.kind not in "iu":
        return {}
    bits = dtype.itemsize * 8
    return {
        "minimum": 0 if dtype.kind == "u" else -(1 << (bits - 1)),
        "maximum": (1 << (bits if dtype.kind == "u" else bits - 1)) - 1,
    }


def _expect_items(value: Any, dtype: Any) -> None:
    """numpy would make a number of a text and of nothing, and a whole number of any."""
    allowed: Any = {"f": {int, float}, "i": {int, float}, "u": {int, float}, "b": {bool}}.get(dtype.kind)
    if allowed is None:
        return
    ahead = [value]
    while ahead:
        part = ahead.pop()
        if not isinstance(part, list):
            part = [part]
        elif any(type(item) is list for item in part):
            if not all(type(item) is list for item in part):
                raise Mismatch(f"it is not an array of {dtype}: some of its rows are no lists")
            ahead.extend(part)
            continue
        odd = next((item for item in part if type(item) not in allowed), None)
        if odd is not None or None in part:
            raise Mismatch(f"it is not an array of {dtype}: it has {json.dumps(odd)[:60]} in it")
        if dtype.kind in "iu" and any(type(item) is float and not item.is_integer() for item in part):
            raise Mismatch(f"it is not an array of {dtype}: it has a fraction in it")


def _optional(kind: Any) -> bool:
    return bool(getattr(kind, "optional", False))


def _list(names: Any) -> str:
    return ", ".join(repr(str(name)) for name in names)
