"""A sweep in words: `lr=loguniform(-6, -1)`, `bandit(slack_factor=0.1)`, and the section `sweep` of a job file."""

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

# key of the section -> what it takes, for people
SWEEP_KEYS = {
    "parameters": "mapping of arguments to expressions, such as {--lr: 'loguniform(-6, -1)', --units: [16, 32]}",
    "metric": "the primary metric's name",
    "goal": "maximize (the default) or minimize",
    "max_total_runs": "whole number; a grid's own size by default",
    "max_concurrent_runs": "whole number; default: 4",
    "max_duration_minutes": "whole number; default: a week",
    "sampling": "random (the default), grid, bayesian, sobol or 'population(8)'",
    "seed": "whole number: the same seed gives the same children",
    "policy": "'bandit(slack_factor=0.1)', 'median()', 'truncation(20)' or 'hyperband()'",
    "max_failures_in_a_row": "whole number; default: 10",
}
_POLICY_EXAMPLES = {
    "bandit": "bandit(slack_factor=0.1)",
    "median": "median()",
    "truncation": "truncation(20)",
    "hyperband": "hyperband()",
}
_AS_IN_PYTHON = (
    "as in Python, with plain values: uniform(0, 1), choice('a', 'b'), choice(range(4)); nothing is computed"
)
_AT_ONCE = 4
_MOST_UNSAID = 100_000  # children that nobody has asked for by their number
# what is lacking -> how it is said on the command line, and in a file
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


def sweep_of(estimator: Any, said: dict[str, Any], *, in_file: bool = False) -> Any:
    """A HyperDriveConfig of the section's words; ``said`` holds keys of SWEEP_KEYS only."""
    from runyard import hyperdrive

    space = said.get("parameters")
    if not isinstance(space, dict) or not space:
        raise UserErrorException("the sweep has no parameters", hint=_HINTS["parameters"][in_file])
    metric = said.get("metric")
    if metric in (None, ""):
        raise UserErrorException("the sweep has no metric to compare its children by", hint=_HINTS["metric"][in_file])
    if not isinstance(metric, str):
        raise UserErrorException(f"metric takes one name, not {metric!r}", hint=_HINTS["metric"][in_file])
    kinds = {
        "random": hyperdrive.RandomParameterSampling,
        "grid": hyperdrive.GridParameterSampling,
        "bayesian": hyperdrive.BayesianParameterSampling,
        "sobol": hyperdrive.SobolParameterSampling,
        "population": hyperdrive.PopulationParameterSampling,
    }
    how = "sampling" if in_file else "--sampling"
    word, more_of_it, named = _call_or_name(str(said.get("sampling") or "random"), how, "population(8)")
    kind = word.lower()
    if kind not in kinds:
        raise UserErrorException(
            f"there is no sampling {word!r}", hint=did_you_mean(kind, kinds) + f"samplings: {', '.join(kinds)}"
        )
    if "seed" in named:
        raise UserErrorException(f"{how}: the seed has a place of its own", hint=_HINTS["seed"][in_file])
    where = "parameters: " if in_file else "--sweep "
    parameters = {str(name): expression_of(str(name), given, where) for name, given in space.items()}
    made = partial(kinds[kind], parameters, seed=said.get("seed"))
    sampling = _checked(how, kind, made, more_of_it, named, "population(8)" if kind == "population" else kind)()
    total = said.get("max_total_runs")
    if total is None:
        if kind != "grid":
            raise UserErrorException(
                "the sweep does not say how many children it has", hint=_HINTS["max_total_runs"][in_file]
            )
        total = grid_size(parameters)
        if total > _MOST_UNSAID:
            raise UserErrorException(
                f"the grid has {total:,} points, and the sweep does not say how many of them to try",
                hint=_HINTS["max_total_runs"][in_file],
            )
    validate_count("max_total_runs", total)
    goal = str(said.get("goal") or MAXIMIZE).lower()
    if goal not in (MAXIMIZE, MINIMIZE):
        raise UserErrorException(
            f"the goal is {MAXIMIZE} or {MINIMIZE}, not {goal!r}",
            hint=did_you_mean(goal, (MAXIMIZE, MINIMIZE)) + _HINTS["goal"][in_file],
        )
    at_once = said.get("max_concurrent_runs")
    more = {key: said[key] for key in ("max_duration_minutes", "max_failures_in_a_row") if said.get(key) is not None}
    return hyperdrive.HyperDriveConfig(
        sampling,
        metric,
        hyperdrive.PrimaryMetricGoal.from_str(goal),
        total,
        min(_AT_ONCE, total) if at_once is None else at_once,
        policy=policy_of(str(said["policy"]), "policy" if in_file else "--policy") if said.get("policy") else None,
        estimator=estimator,
        **more,
    )


def parse_parameters(given: list[str]) -> dict[str, Any]:
    """``lr=loguniform(-6,-1)`` for each."""
    found: dict[str, Any] = {}
    for text in given:
        name, equals, value = text.partition("=")
        name, value = name.strip(), value.strip()
        if not name or not equals or not value:
            raise UserErrorException(
                f"--sweep takes NAME=EXPRESSION, not {text!r}", hint="--sweep 'lr=loguniform(-6, -1)'"
            )
        if name in found:
            both = f"{name}={found[name]},{value}"
            hint = f"--sweep {both}" if "(" not in both else f"keep one --sweep {name}"
            raise UserErrorException(f"--sweep {name} is given twice", hint=hint)
        found[name] = value
    return found


def expression_of(name: str, given: Any, where: str = "--sweep ") -> Any:
    """An expression from its words, from a list of options, or from ``1,2,3``."""
    if given is None or given == "":
        raise UserErrorException(f"{where}{name} has nothing to try", hint=f"for example {EXAMPLES['uniform']}")
    if isinstance(given, dict):
        raise UserErrorException(
            f"{where}{name} takes an expression or a list of options, not {given!r}",
            hint=f"for example {EXAMPLES['uniform']}, or [16, 32]",
        )
    if not isinstance(given, str):
        options = given if isinstance(given, (list, tuple)) else [given]
        return _choice(name, [_space(one, f"{where}{name}: ") if isinstance(one, dict) else one for one in options])
    if given.startswith("["):  # cut at its commas, a list would become texts with a bracket each
        return _choice(name, _options(f"{where}{name}", given))
    if "(" not in given and not given.startswith("{"):
        return _choice(name, _split(f"{where}{name}", given))
    word, arguments, keywords = _call(given, f"{where}{name}", _AS_IN_PYTHON)
    return _expression(name, word, arguments, keywords)


def _space(option: dict[Any, Any], where: str) -> dict[str, Any]:
    """An option that is a space of its own: what has one value only is that value."""
    found = {}
    for name, given in option.items():
        expression = expression_of(str(name), given, where)
        values = expression[1][0] if expression[0] == "choice" else []
        found[str(name)] = values[0] if len(values) == 1 and not isinstance(values[0], dict) else expression
    return found


def _expression(name: str, word: str, arguments: list[Any], keywords: dict[str, Any]) -> Any:
    from runyard import hyperdrive

    if word not in EXAMPLES:
        raise UserErrorException(
            f"{name}: there is no expression {word!r}",
            hint=did_you_mean(word, EXAMPLES) + f"expressions: {', '.join(EXAMPLES)}",
        )
    return _named(name, _checked(name, word, getattr(hyperdrive, word), arguments, keywords, EXAMPLES[word]))


def _choice(name: str, options: Any) -> Any:
    from runyard import hyperdrive

    return _named(name, lambda: hyperdrive.choice(*options))


def _named(name: str, make: Callable[[], Any]) -> Any:
    try:
        return make()
    except HyperDriveConfigException as error:
        raise UserErrorException(f"{name}: {error.message}", hint=error.hint) from None


def policy_of(text: str, where: str = "--policy") -> Any:
    from runyard import hyperdrive

    policies = {
        "bandit": hyperdrive.BanditPolicy,
        "median": hyperdrive.MedianStoppingPolicy,
        "truncation": hyperdrive.TruncationSelectionPolicy,
        "hyperband": hyperdrive.HyperbandPolicy,
    }
    word, arguments, keywords = _call_or_name(text, where, ", ".join(_POLICY_EXAMPLES.values()))
    if word.lower() not in policies:
        raise UserErrorException(
            f"there is no policy {word!r}", hint=did_you_mean(word, policies) + f"policies: {', '.join(policies)}"
        )
    word = word.lower()
    return _checked(where, word, policies[word], arguments, keywords, _POLICY_EXAMPLES[word])()


def _checked(
    where: str, word: str, function: Any, arguments: list[Any], keywords: dict[str, Any], example: str
) -> Callable[[], Any]:
    """The call, when its arguments can be those of the function: Python's own words name what nobody has typed."""
    signature = inspect.signature(function)
    names = [name for name in signature.parameters if name != "seed"]  # which is said beside it
    unknown = [name for name in keywords if name not in names]
    if unknown:
        raise UserErrorException(
            f"{where}: {word} has no {unknown[0]!r}",
            hint=did_you_mean(unknown[0], names) + f"it takes: {', '.join(names)}",
        )
    try:
        signature.bind(*arguments, **keywords)
    except TypeError:
        given = ", ".join([*map(repr, arguments), *(f"{name}={value!r}" for name, value in keywords.items())])
        raise UserErrorException(
            f"{where}: {word} takes {', '.join(names)}, not ({given})", hint=f"for example {example}"
        ) from None
    return lambda: function(*arguments, **keywords)


def _call_or_name(text: str, where: str, example: str) -> tuple[str, list[Any], dict[str, Any]]:
    return _call(text, where, f"for example {example}") if "(" in text else (text, [], {})


def _call(text: str, where: str, hint: str) -> tuple[str, list[Any], dict[str, Any]]:
    """``f(1, q=2)`` taken apart; it is read, and nothing is evaluated."""
    try:
        return _parts(ast.parse(text.strip(), mode="eval").body, where)
    except _UNREADABLE:
        raise UserErrorException(f"{where}: {text!r} cannot be read", hint=hint) from None


def _parts(node: ast.expr, where: str) -> tuple[str, list[Any], dict[str, Any]]:
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
        raise ValueError
    arguments = [_value(argument, where) for argument in node.args]
    return node.func.id, arguments, {str(one.arg): _value(one.value, where) for one in node.keywords}


def _value(node: ast.expr | None, where: str) -> Any:
    """A plain value, a range, or a dict or list with expressions in it."""
    if isinstance(node, ast.Dict):
        return {_value(name, where): _value(value, where) for name, value in zip(node.keys, node.values)}
    if isinstance(node, (ast.List, ast.Tuple)):
        return [_value(one, where) for one in node.elts]
    if isinstance(node, ast.Call):
        word, arguments, keywords = _parts(node, where)
        return _range(arguments) if word == "range" else _expression(where, word, arguments, keywords)
    if node is None:
        raise ValueError
    return ast.literal_eval(node)


def _range(ends: list[Any]) -> list[int]:
    values = range(*ends)
    if len(values) > _MOST_UNSAID:
        raise UserErrorException(
            f"a range of {len(values):,} values is too long to choose from", hint="randint(1000000)"
        )
    return list(values)


def _options(where: str, text: str) -> list[Any]:
    try:
        return list(_value(ast.parse(text, mode="eval").body, where))
    except _UNREADABLE:
        raise UserErrorException(
            f"{where}: the list {text!r} cannot be read", hint="write it as in Python: [0.1, 0.2], or 0.1,0.2"
        ) from None


def _split(where: str, text: str) -> list[Any]:
    parts = [part.strip() for part in text.split(",")]
    if "" in parts:
        raise UserErrorException(f"{where}: an option in {text!r} is empty", hint="write '' for an empty text")
    return [_literal(part) for part in parts]


def _literal(text: str) -> Any:
    try:
        return ast.literal_eval(text)
    except (SyntaxError, ValueError):
        return text


# what Python says of a text that is no such call, or too deep or too long to be one
_UNREADABLE = (MemoryError, OverflowError, RecursionError, SyntaxError, TypeError, ValueError)
