"""Comparison of arrays, and parsing of example inputs."""

from __future__ import annotations

import numpy as np
import pytest

from runyard.errors import OnnxExportException
from runyard.onnx import export
from runyard.onnx.inputs import other_batch_sizes, parse_example_inputs, resize
from runyard.onnx.packages import require
from runyard.onnx.parity import CaseParity, Report, Tolerance, as_tolerance, compare

FINE = Tolerance(rtol=1e-3, atol=1e-5)


def compare_arrays(expected: object, got: object, tolerance: Tolerance = FINE) -> CaseParity:
    return compare("example 1", 2, ["y"], [np.asarray(expected)], [np.asarray(got)], tolerance)


def report(case: CaseParity) -> Report:
    return Report(FINE.rtol, FINE.atol, 0.0, [case])


def test_equal_and_nearly_equal_values_pass() -> None:
    assert compare_arrays([1.0, 2.0], [1.0, 2.0]).passed
    assert compare_arrays([1.0, 1000.0], [1.000001, 1000.5]).passed


def test_a_difference_is_reported_with_index_and_values() -> None:
    case = compare_arrays([[1.0, 2.0], [3.0, 4.0]], [[1.0, 2.0], [3.5, 4.0]])
    (output,) = case.outputs
    assert not case.passed
    assert (output.different, output.of, output.max_abs) == (1, 4, 0.5)
    assert output.worst is not None
    assert (output.worst.index, output.worst.expected, output.worst.got) == ([1, 0], 3.0, 3.5)
    difference = report(case).first_difference()
    assert "output 'y' for example 1 at [1, 0]: expected 3, got 3.5; 1 of 4 values" in difference
    assert report(case).as_json()["passed"] is False


def test_nan_and_infinity_equal_only_themselves() -> None:
    assert compare_arrays([np.nan, np.inf], [np.nan, np.inf]).passed
    for invalid in ([0.0, np.inf], [np.nan, 1.0], [np.nan, -np.inf]):
        case = compare_arrays([np.nan, np.inf], invalid)
        assert not case.passed
        assert report(case).as_json()["cases"][0]["outputs"][0]["max_abs"] == "inf"


def test_integers_and_booleans_must_be_equal() -> None:
    assert compare_arrays([1, 2], [1, 2]).passed
    assert not compare_arrays([1000, 2], [1001, 2], Tolerance(1.0, 1.0)).passed
    assert not compare_arrays([True, False], [True, True]).passed


def test_different_shapes_types_and_output_counts_are_reported() -> None:
    assert "expected shape [2, 1], got [2]" in report(compare_arrays([[1.0], [2.0]], [1.0, 2.0])).first_difference()
    assert "expected type float64, got int64" in report(compare_arrays([1.0], [1])).first_difference()
    arrays = [np.ones(2)]
    assert "expected 1 outputs, got 2" in compare("a", 1, ["y"], arrays, arrays * 2, FINE).problem


def test_quantized_models_are_compared_relative_to_the_value_range() -> None:
    assert compare_arrays([0.0, 10.0], [0.9, 10.0], Tolerance(0.0, 0.0, share=0.1)).passed
    assert not compare_arrays([0.0, 1.0], [0.9, 1.0], Tolerance(0.0, 0.0, share=0.1)).passed


def test_a_tolerance_is_a_number_or_a_pair() -> None:
    assert as_tolerance(None, is_half_precision=False) == Tolerance(1e-3, 1e-5)
    assert as_tolerance(None, is_half_precision=True).rtol > 1e-3
    assert as_tolerance(1e-4, is_half_precision=False) == Tolerance(1e-4, 1e-4)
    assert as_tolerance((1e-2, 0), is_half_precision=False) == Tolerance(1e-2, 0.0)
    assert as_tolerance({"atol": 1.0}, is_half_precision=False) == Tolerance(1e-3, 1.0)
    for invalid in ("much", (1, 2, 3), -1, float("nan"), float("inf")):
        with pytest.raises(OnnxExportException, match="tolerance must be"):
            as_tolerance(invalid, is_half_precision=False)


def test_inputs_have_the_parameter_names_and_other_batch_sizes() -> None:
    def forward(image: object, mask: object = None) -> None: ...

    inputs = parse_example_inputs((np.zeros((2, 3)), np.arange(2)), forward, dynamic_batch=True)
    assert (inputs.names, inputs.axes) == (("image", "mask"), (0, 0))
    assert [case.batch for case in other_batch_sizes(inputs)] == [1, 5]
    assert resize(inputs, inputs.first, 5).values[1].tolist() == [0, 1, 0, 1, 0]
    by_name = parse_example_inputs([{"mask": np.ones((3, 2)), "x": np.ones((1, 2))}], forward, {"mask": 1, "x": 1})
    assert (by_name.names, by_name.axes, by_name.first.batch) == (("mask", "x"), (1, 1), 2)
    assert other_batch_sizes(parse_example_inputs(np.ones(3), forward, dynamic_batch=False)) == []


def test_invalid_example_inputs_are_refused() -> None:
    def forward(x: object, h: object) -> None: ...

    for invalid, message in (
        ([], "example_inputs is empty"),
        ((np.ones((2, 3)), np.ones((3, 2))), "x has 2, h has 3 along the batch axis"),
        ((np.ones(2), (np.ones(2), np.ones(2))), "the input 'h' must be a tensor or an array, got tuple"),
        ([np.ones(2), (np.ones(2), np.ones(2))], "example 2 differs from the first"),
    ):
        with pytest.raises(OnnxExportException, match=message):
            parse_example_inputs(invalid, forward, dynamic_batch=True)
    with pytest.raises(OnnxExportException, match="which is not an input"):
        parse_example_inputs(np.ones(2), forward, dynamic_batch={"y": 0})


def test_a_missing_package_is_reported_with_its_installation_command() -> None:
    with pytest.raises(OnnxExportException, match="exporting needs not_there_a and not_there_b") as error_info:
        require("json", "not_there_a", "not_there_b", purpose="exporting")
    assert error_info.value.hint == "pip install not_there_a not_there_b"


def test_invalid_parameters_are_refused_before_imports() -> None:
    for how, message in (
        ({}, "needs register_as or folder"),
        ({"register_as": "x", "exporter": "magic"}, "exporter must be 'dynamo' or 'torchscript', got 'magic'"),
        ({"register_as": "x", "opset": "new"}, "opset must be a whole number"),
        ({"register_as": "x", "quantize": "int4"}, "quantize must be 'int8'"),
        ({"register_as": "x", "quantize": "int8", "quantize_tolerance": 3}, "between 0 and 1"),
    ):
        with pytest.raises(OnnxExportException, match=message):
            export(object(), None, **how)  # type: ignore[arg-type]
