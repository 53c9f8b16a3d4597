"""A sweep in words: `lr=loguniform(-6, -1)`, `bandit(slack_factor=0.1)`, and the section `sweep` of a job file."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable
from functools import partial
from typing import Any

from runyard.errors import HyperDriveConfigException, UserErrorException
from runyard.sdk.checks import nearest
from runyard.spec.space import EXAMPLES
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
_AT_ONCE = 4
# what is lacking -> how it is said on the command line, and in a file
_HINTS = {
    "parameters": ("--sweep 'lr=loguniform(-6, -1)'", "parameters: {--lr: 'loguniform(-6, -1)'}"),
    "metric": ("--metric accuracy", "metric: accuracy"),
    "max_total_runs": ("--max-runs 20", "max_total_runs: 20"),
    "goal": (
        "--goal maximize for an accuracy, --goal minimize for a loss",
        "goal: maximize for an accuracy, goal: minimize for a loss",
    ),
}


def sweep_of(estimator: Any, said: dict[str, Any], *, in_file: bool = False) -> Any:
    """A HyperDriveConfig of the section's words; ``said`` holds keys of SWEEP_KEYS only."""
    from runyard import hyperdrive
    from runyard.spec.space import grid_size

    space = said.get("parameters")
    if not isinstance(space, dict) or not space:
        raise UserErrorException("the sweep has no parameters", hint=_HINTS["parameters"][in_file])
    if not said.get("metric"):
        raise UserErrorException("the sweep has no metric to compare its children by", hint=_HINTS["metric"][in_file])
    kinds = {
        "random": hyperdrive.RandomParameterSampling,
        "grid": hyperdrive.GridParameterSampling,
        "bayesian": hyperdrive.BayesianParameterSampling,
        "sobol": hyperdrive.SobolParameterSampling,
        "population": hyperdrive.PopulationParameterSampling,
    }
    how = "sampling" if in_file else "--sampling"
    word, more_of_it, named = _call_or_name(str(said.get("sampling") or "random"), how)
    kind = word.lower()
    if kind not in kinds:
        raise UserErrorException(
            f"there is no sampling {word!r}", hint=nearest(kind, kinds) + f"samplings: {', '.join(kinds)}"
        )
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
    goal = str(said.get("goal") or MAXIMIZE).lower()
    if goal not in (MAXIMIZE, MINIMIZE):
        raise UserErrorException(
            f"the goal is {MAXIMIZE} or {MINIMIZE}, not {goal!r}",
            hint=nearest(goal, (MAXIMIZE, MINIMIZE)) + _HINTS["goal"][in_file],
        )
    at_once = said.get("max_concurrent_runs")
    more = {key: said[key] for key in ("max_duration_minutes", "max_failures_in_a_row") if said.get(key) is not None}
    return hyperdrive.HyperDriveConfig(
        sampling,
        str(said["metric"]),
        hyperdrive.PrimaryMetricGoal.from_str(goal),
        total,
        min(_AT_ONCE, total) if at_once is None else at_once,
        policy=policy_of(str(said["policy"]), "policy" if in_file else "--policy") if said.get("policy") else None,
        estimator=estimator,
        **more,
    )


def parameters_of(given: list[str]) -> dict[str, Any]:
    """``lr=loguniform(-6,-1)`` for each."""
    found: dict[str, Any] = {}
    for text in given:
        name, equals, value = text.partition("=")
        if not name.strip() or not equals:
            raise UserErrorException(
                f"--sweep takes NAME=EXPRESSION, not {text!r}", hint="--sweep 'lr=loguniform(-6, -1)'"
            )
        found[name.strip()] = value.strip()
    return found


def expression_of(name: str, given: Any, where: str = "--sweep ") -> Any:
    """An expression from its words, from a list of options, or from ``1,2,3``."""
    from runyard import hyperdrive

    if not isinstance(given, str):
        return _choice(name, given if isinstance(given, (list, tuple)) else [given])
    functions = {
        word: getattr(hyperdrive, word)
        for word in (
            *("choice", "randint", "uniform", "quniform", "loguniform"),
            *("qloguniform", "normal", "qnormal", "lognormal", "qlognormal"),
        )
    }
    if given.startswith("["):  # cut at its commas, a list would become texts with a bracket each
        return _choice(name, _options(f"{where}{name}", given))
    if "(" not in given:
        return _choice(name, [_literal(part) for part in given.split(",")])
    word, arguments, keywords = _call(given, f"{where}{name}")
    if word not in functions:
        raise UserErrorException(
            f"{name}: there is no expression {word!r}",
            hint=nearest(word, functions) + f"expressions: {', '.join(functions)}",
        )
    return _named(name, _checked(name, word, functions[word], arguments, keywords, EXAMPLES[word]))


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
    word, arguments, keywords = _call_or_name(text, where)
    if word.lower() not in policies:
        raise UserErrorException(
            f"there is no policy {word!r}", hint=nearest(word, policies) + f"policies: {', '.join(policies)}"
        )
    word = word.lower()
    return _checked(where, word, policies[word], arguments, keywords, _POLICY_EXAMPLES[word])()


def _checked(
    where: str, word: str, function: Any, arguments: list[Any], keywords: dict[str, Any], example: str
) -> Callable[[], Any]:
    """The call, when its arguments can be those of the function: Python's own words name what nobody has typed."""
    signature = inspect.signature(function)
    names = list(signature.parameters)
    unknown = [name for name in keywords if name not in names]
    if unknown:
        raise UserErrorException(
            f"{where}: {word} has no {unknown[0]!r}", hint=nearest(unknown[0], names) + f"it takes: {', '.join(names)}"
        )
    try:
        signature.bind(*arguments, **keywords)
    except TypeError:
        given = ", ".join([*map(repr, arguments), *(f"{name}={value!r}" for name, value in keywords.items())])
        raise UserErrorException(
            f"{where}: {word} takes {', '.join(names)}, not ({given})", hint=f"for example {example}"
        ) from None
    return lambda: function(*arguments, **keywords)


def _call_or_name(text: str, where: str) -> tuple[str, list[Any], dict[str, Any]]:
    return _call(text, where) if "(" in text else (text, [], {})


def _call(text: str, where: str) -> tuple[str, list[Any], dict[str, Any]]:
    """``f(1, q=2)`` taken apart; only plain values are taken, nothing is evaluated."""
    try:
        parsed = ast.parse(text.strip(), mode="eval").body
        if not isinstance(parsed, ast.Call) or not isinstance(parsed.func, ast.Name):
            raise ValueError
        arguments = [ast.literal_eval(argument) for argument in parsed.args]
        keywords = {str(one.arg): ast.literal_eval(one.value) for one in parsed.keywords}
    except (SyntaxError, ValueError):
        raise UserErrorException(
            f"{where}: {text!r} cannot be read", hint="write it as in Python: uniform(0, 1), choice('a', 'b')"
        ) from None
    return parsed.func.id, arguments, keywords


def _options(where: str, text: str) -> list[Any]:
    try:
        return list(ast.literal_eval(text))
    except (SyntaxError, ValueError):
        raise UserErrorException(
            f"{where}: the list {text!r} cannot be read", hint="write it as in Python: [0.1, 0.2], or 0.1,0.2"
        ) from None


def _literal(text: str) -> Any:
    try:
        return ast.literal_eval(text.strip())
    except (SyntaxError, ValueError):
        return text.strip()
