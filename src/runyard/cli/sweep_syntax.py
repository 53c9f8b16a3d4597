"""Parses sweeps: `lr=loguniform(-6, -1)`, `bandit(slack_factor=0.1)`, and the `sweep` section of a job file."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable
from functools import partial
from typing import Any

from runyard.errors import HyperDriveConfigException, UserErrorException
from runyard.sdk.core.validation import did_you_mean
from runyard.spec.space import grid_size
from runyard.spec.space_checks import EXAMPLES, validate_count
from runyard.spec.sweep import MAXIMIZE, MINIMIZE

# key -> description
SWEEP_KEYS = {
    "parameters": "mapping of arguments to expressions, such as {--lr: 'loguniform(-6, -1)', --units: [16, 32]}",
    "metric": "the primary metric's name",
    "goal": "maximize (default) or minimize",
    "max_total_runs": "integer; default: the size of a grid",
    "max_concurrent_runs": "integer; default: 4",
    "max_duration_minutes": "integer; default: a week",
    "sampling": "random (default), grid, bayesian, sobol or 'population(8)'",
    "seed": "integer: random seed",
    "policy": "'bandit(slack_factor=0.1)', 'median()', 'truncation(20)' or 'hyperband()'",
    "max_failures_in_a_row": "integer; default: 10",
}
_POLICY_EXAMPLES = {
    "bandit": "bandit(slack_factor=0.1)",
    "median": "median()",
    "truncation": "truncation(20)",
    "hyperband": "hyperband()",
}
_EXPRESSION_HINT = "use Python syntax with literal values: uniform(0, 1), choice('a', 'b'), choice(range(4))"
_DEFAULT_CONCURRENCY = 4
_MAX_IMPLICIT = 100_000  # children of a grid without max_total_runs, and values of a range
# missing setting -> hint for the command line, hint for a file
_HINTS = {
    "parameters": ("--sweep 'lr=loguniform(-6, -1)'", "parameters: {--lr: 'loguniform(-6, -1)'}"),
    "metric": ("--metric accuracy", "metric: accuracy"),
    "max_total_runs": ("--max-runs 20", "max_total_runs: 20"),
    "seed": ("--seed 3", "seed: 3"),
    "goal": (
        "--goal maximize for an accuracy, --goal minimize for a loss",
        "goal: maximize for an accuracy, goal: minimize for a loss",
    ),
}


def build_sweep(estimator: Any, settings: dict[str, Any], *, in_file: bool = False) -> Any:
    """Build a HyperDriveConfig; ``settings`` has only keys of SWEEP_KEYS."""
    from runyard import hyperdrive

    space = settings.get("parameters")
    if not isinstance(space, dict) or not space:
        raise UserErrorException("the sweep has no parameters", hint=_HINTS["parameters"][in_file])
    metric = settings.get("metric")
    if metric in (None, ""):
        raise UserErrorException("the sweep has no metric", hint=_HINTS["metric"][in_file])
    if not isinstance(metric, str):
        raise UserErrorException(f"metric must be a name, got {metric!r}", hint=_HINTS["metric"][in_file])
    kinds = {
        "random": hyperdrive.RandomParameterSampling,
        "grid": hyperdrive.GridParameterSampling,
        "bayesian": hyperdrive.BayesianParameterSampling,
        "sobol": hyperdrive.SobolParameterSampling,
        "population": hyperdrive.PopulationParameterSampling,
    }
    option = "sampling" if in_file else "--sampling"
    name, arguments, keywords = _call_or_name(str(settings.get("sampling") or "random"), option, "population(8)")
    kind = name.lower()
    if kind not in kinds:
        raise UserErrorException(
            f"unknown sampling {name!r}", hint=did_you_mean(kind, kinds) + f"available samplings: {', '.join(kinds)}"
        )
    if "seed" in keywords:
        raise UserErrorException(f"{option}: the seed is a separate setting", hint=_HINTS["seed"][in_file])
    where = "parameters: " if in_file else "--sweep "
    parameters = {str(name): parse_expression(str(name), value, where) for name, value in space.items()}
    factory = partial(kinds[kind], parameters, seed=settings.get("seed"))
    example = "population(8)" if kind == "population" else kind
    sampling = _bind(option, kind, factory, arguments, keywords, example)()
    total = settings.get("max_total_runs")
    if total is None:
        if kind != "grid":
            raise UserErrorException("max_total_runs is required", hint=_HINTS["max_total_runs"][in_file])
        total = grid_size(parameters)
        if total > _MAX_IMPLICIT:
            raise UserErrorException(
                f"the grid has {total:,} points: set max_total_runs",
                hint=_HINTS["max_total_runs"][in_file],
            )
    validate_count("max_total_runs", total)
    goal = str(settings.get("goal") or MAXIMIZE).lower()
    if goal not in (MAXIMIZE, MINIMIZE):
        raise UserErrorException(
            f"goal must be {MAXIMIZE} or {MINIMIZE}, got {goal!r}",
            hint=did_you_mean(goal, (MAXIMIZE, MINIMIZE)) + _HINTS["goal"][in_file],
        )
    concurrency = settings.get("max_concurrent_runs")
    limits = {
        key: settings[key] for key in ("max_duration_minutes", "max_failures_in_a_row") if settings.get(key) is not None
    }
    return hyperdrive.HyperDriveConfig(
        sampling,
        metric,
        hyperdrive.PrimaryMetricGoal.from_str(goal),
        total,
        min(_DEFAULT_CONCURRENCY, total) if concurrency is None else concurrency,
        policy=parse_policy(str(settings["policy"]), "policy" if in_file else "--policy")
        if settings.get("policy")
        else None,
        estimator=estimator,
        **limits,
    )


def parse_parameters(texts: list[str]) -> dict[str, Any]:
    """Parse options such as ``lr=loguniform(-6,-1)``."""
    parameters: dict[str, Any] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        name, value = name.strip(), value.strip()
        if not name or not equals or not value:
            raise UserErrorException(
                f"--sweep must be NAME=EXPRESSION, got {text!r}", hint="--sweep 'lr=loguniform(-6, -1)'"
            )
        if name in parameters:
            both = f"{name}={parameters[name]},{value}"
            hint = f"--sweep {both}" if "(" not in both else f"remove one --sweep {name}"
            raise UserErrorException(f"duplicate --sweep {name}", hint=hint)
        parameters[name] = value
    return parameters


def parse_expression(name: str, value: Any, where: str = "--sweep ") -> Any:
    """Parse an expression such as ``uniform(0, 1)``, a list of options, or ``1,2,3``."""
    if value is None or value == "":
        raise UserErrorException(f"{where}{name} is empty", hint=f"for example {EXAMPLES['uniform']}")
    if isinstance(value, dict):
        raise UserErrorException(
            f"{where}{name} must be an expression or a list of options, got {value!r}",
            hint=f"for example {EXAMPLES['uniform']}, or [16, 32]",
        )
    if not isinstance(value, str):
        options = value if isinstance(value, (list, tuple)) else [value]
        return _choice(name, [_space(item, f"{where}{name}: ") if isinstance(item, dict) else item for item in options])
    if value.startswith("["):  # splitting at commas would leave the brackets
        return _choice(name, _options(f"{where}{name}", value))
    if "(" not in value and not value.startswith("{"):
        return _choice(name, _split(f"{where}{name}", value))
    function, arguments, keywords = _call(value, f"{where}{name}", _EXPRESSION_HINT)
    return _expression(name, function, arguments, keywords)


def _space(option: dict[Any, Any], where: str) -> dict[str, Any]:
    """A nested space as an option; a parameter with a single value is that value."""
    space = {}
    for name, value in option.items():
        expression = parse_expression(str(name), value, where)
        values = expression[1][0] if expression[0] == "choice" else []
        space[str(name)] = values[0] if len(values) == 1 and not isinstance(values[0], dict) else expression
    return space


def _expression(name: str, function: str, arguments: list[Any], keywords: dict[str, Any]) -> Any:
    from runyard import hyperdrive

    if function not in EXAMPLES:
        raise UserErrorException(
            f"{name}: unknown expression {function!r}",
            hint=did_you_mean(function, EXAMPLES) + f"available expressions: {', '.join(EXAMPLES)}",
        )
    factory = _bind(name, function, getattr(hyperdrive, function), arguments, keywords, EXAMPLES[function])
    return _with_name(name, factory)


def _choice(name: str, options: Any) -> Any:
    from runyard import hyperdrive

    return _with_name(name, lambda: hyperdrive.choice(*options))


def _with_name(name: str, make: Callable[[], Any]) -> Any:
    try:
        return make()
    except HyperDriveConfigException as error:
        raise UserErrorException(f"{name}: {error.message}", hint=error.hint) from None


def parse_policy(text: str, where: str = "--policy") -> Any:
    from runyard import hyperdrive

    policies = {
        "bandit": hyperdrive.BanditPolicy,
        "median": hyperdrive.MedianStoppingPolicy,
        "truncation": hyperdrive.TruncationSelectionPolicy,
        "hyperband": hyperdrive.HyperbandPolicy,
    }
    name, arguments, keywords = _call_or_name(text, where, ", ".join(_POLICY_EXAMPLES.values()))
    if name.lower() not in policies:
        raise UserErrorException(
            f"unknown policy {name!r}", hint=did_you_mean(name, policies) + f"available policies: {', '.join(policies)}"
        )
    name = name.lower()
    return _bind(where, name, policies[name], arguments, keywords, _POLICY_EXAMPLES[name])()


def _bind(
    where: str, name: str, function: Any, arguments: list[Any], keywords: dict[str, Any], example: str
) -> Callable[[], Any]:
    """A call with checked arguments: Python's own error would mention names that the user has not typed."""
    signature = inspect.signature(function)
    names = [parameter for parameter in signature.parameters if parameter != "seed"]  # a separate setting
    unknown = [keyword for keyword in keywords if keyword not in names]
    if unknown:
        raise UserErrorException(
            f"{where}: {name} has no parameter {unknown[0]!r}",
            hint=did_you_mean(unknown[0], names) + f"parameters: {', '.join(names)}",
        )
    try:
        signature.bind(*arguments, **keywords)
    except TypeError:
        call = ", ".join([*map(repr, arguments), *(f"{key}={value!r}" for key, value in keywords.items())])
        raise UserErrorException(
            f"{where}: expected {name}({', '.join(names)}), got {name}({call})", hint=f"for example {example}"
        ) from None
    return lambda: function(*arguments, **keywords)


def _call_or_name(text: str, where: str, example: str) -> tuple[str, list[Any], dict[str, Any]]:
    return _call(text, where, f"for example {example}") if "(" in text else (text, [], {})


def _call(text: str, where: str, hint: str) -> tuple[str, list[Any], dict[str, Any]]:
    """Parse ``f(1, q=2)`` without evaluating it."""
    try:
        return _parts(ast.parse(text.strip(), mode="eval").body, where)
    except _UNREADABLE:
        raise UserErrorException(f"{where}: cannot parse {text!r}", hint=hint) from None


def _parts(node: ast.expr, where: str) -> tuple[str, list[Any], dict[str, Any]]:
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
        raise ValueError
    arguments = [_value(argument, where) for argument in node.args]
    return node.func.id, arguments, {str(keyword.arg): _value(keyword.value, where) for keyword in node.keywords}


def _value(node: ast.expr | None, where: str) -> Any:
    """A plain value, a range, or a dict or list with expressions in it."""
    if isinstance(node, ast.Dict):
        return {_value(name, where): _value(value, where) for name, value in zip(node.keys, node.values)}
    if isinstance(node, (ast.List, ast.Tuple)):
        return [_value(element, where) for element in node.elts]
    if isinstance(node, ast.Call):
        function, arguments, keywords = _parts(node, where)
        return _range(arguments) if function == "range" else _expression(where, function, arguments, keywords)
    if node is None:
        raise ValueError
    return ast.literal_eval(node)


def _range(ends: list[Any]) -> list[int]:
    values = range(*ends)
    if len(values) > _MAX_IMPLICIT:
        raise UserErrorException(f"a range of {len(values):,} values is too long", hint="use randint(1000000)")
    return list(values)


def _options(where: str, text: str) -> list[Any]:
    try:
        return list(_value(ast.parse(text, mode="eval").body, where))
    except _UNREADABLE:
        raise UserErrorException(f"{where}: cannot parse the list {text!r}", hint="use [0.1, 0.2] or 0.1,0.2") from None


def _split(where: str, text: str) -> list[Any]:
    parts = [part.strip() for part in text.split(",")]
    if "" in parts:
        raise UserErrorException(f"{where}: {text!r} has an empty option", hint="write '' for an empty string")
    return [_literal(part) for part in parts]


def _literal(text: str) -> Any:
    try:
        return ast.literal_eval(text)
    except (SyntaxError, ValueError):
        return text


# errors of the parser for invalid, too deep or too long texts
_UNREADABLE = (MemoryError, OverflowError, RecursionError, SyntaxError, TypeError, ValueError)
