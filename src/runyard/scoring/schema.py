"""``input_schema`` and ``output_schema``: declare inputs and outputs of a scoring function by samples.

Compatible with ``inference_schema``. A request that does not match is rejected before the function is called.
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
    """The request does not match the sample."""


class Signature:
    def __init__(self) -> None:
        self.inputs: dict[str, Any] = {}
        self.output: Any = None

    def arguments(self, body: bytes) -> dict[str, Any]:
        """The function's arguments from a request body. Raises Mismatch."""
        try:
            data = json.loads(body)
        except (ValueError, RecursionError) as error:
            raise Mismatch(f"the body is not JSON: {error}") from error
        if not isinstance(data, dict):
            raise Mismatch(f"expected an object with {_list(self.inputs)}")
        absent = [name for name, kind in self.inputs.items() if name not in data and not _optional(kind)]
        if absent:
            raise Mismatch(f"missing {_list(absent)}")
        unknown = [name for name in data if name not in self.inputs]
        if unknown:
            raise Mismatch(f"unexpected {_list(unknown)}; expected {_list(self.inputs)}")
        return {name: _convert(self.inputs[name], value, name) for name, value in data.items()}

    def input_schema(self) -> dict[str, Any]:
        properties = {name: kind.input_to_swagger() for name, kind in self.inputs.items()}
        required = [name for name, kind in self.inputs.items() if not _optional(kind)]
        result: dict[str, Any] = {"type": "object", "properties": properties, "additionalProperties": False}
        if required:
            result["required"] = required
        result["example"] = {name: part.get("example") for name, part in properties.items()}
        return result


def signature_of(function: Callable[..., Any]) -> Optional[Signature]:
    """None if the function takes the raw text of the request."""
    signature = getattr(function, _SIGNATURE, None)
    return signature if isinstance(signature, Signature) and signature.inputs else None


def output_of(function: Callable[..., Any]) -> Any:
    signature = getattr(function, _SIGNATURE, None)
    return signature.output if isinstance(signature, Signature) else None


def input_schema(
    param_name: str, param_type: Any, convert_to_provided_type: bool = True, optional: bool = False
) -> Any:
    if not isinstance(param_type, AbstractParameterType):
        raise TypeError(f"param_type of {param_name!r} must be a parameter type, got {param_type!r}")
    param_type.converts, param_type.optional = convert_to_provided_type, optional

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        return _annotate(function, lambda signature: signature.inputs.update({param_name: param_type}))

    return decorate


def output_schema(output_type: Any) -> Any:
    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        return _annotate(function, lambda signature: setattr(signature, "output", output_type))

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
        return _match_sample(self.sample_input, input_data)

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
            raise Mismatch(f"expected an array of {sample.dtype}: {error}") from error
        if array.dtype == object:
            raise Mismatch("rows have different lengths")
        if sample.ndim > 1 and array.shape == (0,):
            array = array.reshape(0, *sample.shape[1:])  # no rows
        if self.enforce_shape and (array.ndim != sample.ndim or array.shape[1:] != sample.shape[1:]):
            raise Mismatch(f"expected shape {['any', *sample.shape[1:]]}, got {list(array.shape)}")
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
            raise Mismatch(f"expected a table: {error}") from error
        if self.enforce_shape and len(frame.columns) != len(sample.columns):
            raise Mismatch(f"expected {len(sample.columns)} columns, got {len(frame.columns)}")
        if self.apply_column_names:
            frame.columns = sample.columns
        absent = [str(name) for name in sample.columns if name not in frame.columns]
        if absent:
            raise Mismatch(f"missing columns {_list(absent)}")
        if self.enforce_column_type:
            try:
                frame = frame.astype({name: sample[name].dtype for name in sample.columns})
            except (ValueError, TypeError) as error:
                raise Mismatch(f"wrong column type: {error}") from error
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
    """Provides a pandas data frame, because services do not run Spark."""


def _annotate(function: Callable[..., Any], update: Callable[[Signature], None]) -> Callable[..., Any]:
    signature = getattr(function, _SIGNATURE, None)
    if signature is None:

        @functools.wraps(function)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            return function(*args, **kwargs)

        signature = Signature()
        setattr(wrapper, _SIGNATURE, signature)
        update(signature)
        return wrapper
    update(signature)
    return function


def _convert(kind: Any, value: Any, name: str) -> Any:
    if not kind.converts:
        return value
    try:
        return kind.deserialize_input(value)
    except Mismatch as error:
        raise Mismatch(f"{name!r}: {error}") from error
    except (ValueError, TypeError, KeyError) as error:  # a parameter type defined by the script
        raise Mismatch(f"{name!r}: {error}") from error


def _match_sample(sample: Any, value: Any) -> Any:
    if isinstance(sample, AbstractParameterType):
        return sample.deserialize_input(value)
    if sample is None:
        return value
    if isinstance(sample, dict):
        if not isinstance(value, dict):
            raise Mismatch(f"expected an object, got {_excerpt(value)}")
        absent = [name for name in sample if name not in value]
        if absent:
            raise Mismatch(f"missing {_list(absent)}")
        return {name: _match_sample(sample.get(name), item) for name, item in value.items()}
    if isinstance(sample, (list, tuple)):
        if not isinstance(value, list):
            raise Mismatch(f"expected a list, got {_excerpt(value)}")
        return [_match_sample(sample[0], item) for item in value] if sample else value
    if isinstance(sample, bool):
        return _expect(value, isinstance(value, bool), "true or false")
    if isinstance(sample, int):
        return _expect(value, isinstance(value, int) and not isinstance(value, bool), "an integer")
    if isinstance(sample, float):
        return float(_expect(value, isinstance(value, (int, float)) and not isinstance(value, bool), "a number"))
    if isinstance(sample, datetime.date):
        try:
            return type(sample).fromisoformat(str(value).replace("Z", "+00:00"))
        except ValueError as error:
            raise Mismatch(str(error)) from error
    return _expect(value, isinstance(value, str) or not isinstance(sample, str), "a string")


def _expect(value: Any, fits: bool, expected: str) -> Any:
    if not fits:
        raise Mismatch(f"expected {expected}, got {_excerpt(value)}")
    return value


def _excerpt(value: Any) -> str:
    return json.dumps(value)[:60]


def _swagger(sample: Any) -> dict[str, Any]:
    if isinstance(sample, AbstractParameterType):
        return sample.input_to_swagger()
    if isinstance(sample, dict):
        parts = {str(name): _swagger(item) for name, item in sample.items()}
        example = {name: part.get("example") for name, part in parts.items()}
        return {"type": "object", "properties": parts, "required": list(parts), "example": example}
    if isinstance(sample, (list, tuple)):
        items = _swagger(sample[0]) if sample else {}
        return {"type": "array", "items": items, "example": [_swagger(item).get("example") for item in sample]}
    if isinstance(sample, datetime.datetime):
        return {"type": "string", "format": "date-time", "example": sample.isoformat()}
    if isinstance(sample, datetime.date):
        return {"type": "string", "format": "date", "example": sample.isoformat()}
    kind = next((word for python, word in _JSON_TYPES.items() if isinstance(sample, python)), None)
    return {"type": kind, "example": sample} if kind else {}


def _item(kind: str) -> dict[str, Any]:
    """The JSON schema of a numpy kind."""
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
    """Check item types strictly: numpy would convert text and null to numbers, and fractions to integers."""
    allowed: Any = {"f": {int, float}, "i": {int, float}, "u": {int, float}, "b": {bool}}.get(dtype.kind)
    if allowed is None:
        return
    stack = [value]
    while stack:
        part = stack.pop()
        if not isinstance(part, list):
            part = [part]
        elif any(type(item) is list for item in part):
            if not all(type(item) is list for item in part):
                raise Mismatch(f"expected an array of {dtype}: some rows are not lists")
            stack.extend(part)
            continue
        invalid = next((item for item in part if type(item) not in allowed), None)
        if invalid is not None or None in part:
            raise Mismatch(f"expected an array of {dtype}: it contains {_excerpt(invalid)}")
        if dtype.kind in "iu" and any(type(item) is float and not item.is_integer() for item in part):
            raise Mismatch(f"expected an array of {dtype}: it contains a fraction")


def _optional(kind: Any) -> bool:
    return bool(getattr(kind, "optional", False))


def _list(names: Any) -> str:
    return ", ".join(repr(str(name)) for name in names)
