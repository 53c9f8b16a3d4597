"""Finds code that runs but does not do what it seems to do; published notebooks contain such code."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from runyard.migration.names import ExternalName, Function, Instance, Names
from runyard.migration.report import NOTE, WARNING, Finding
from runyard.migration.sdk_surface import Surface


def find_behavior_changes(tree: ast.Module, names: Names) -> Iterator[Finding]:
    for node in ast.walk(tree):
        if isinstance(node, ast.With):
            yield from _unused_child_run(node, names)
        elif isinstance(node, ast.Compare):
            yield from _compared_process(node, names)
        elif isinstance(node, ast.Call):
            yield from _arguments_as_tags(node, names)
    yield from _gpu_only(tree, names)


def find_unsubmitted_estimators(
    trees: list[tuple[int | None, int, ast.Module]], names: Names, surface: Surface
) -> Iterator[Finding]:
    """Find estimators that are assigned to a variable and not used afterwards, in all cells of a file."""
    estimators: dict[str, tuple[tuple[int, int], Finding]] = {}
    for order, (cell, offset, tree) in enumerate(trees):
        for node in ast.walk(tree):
            if (
                isinstance(node, ast.Assign)
                and isinstance(node.targets[0], ast.Name)
                and isinstance(node.value, ast.Call)
            ):
                values = names.values(node.value)
                if values and all(isinstance(v, Instance) and "Estimator" in _classes(v, surface) for v in values):
                    name = node.targets[0].id
                    message = f"the estimator {name!r} is created here and never submitted"
                    finding = Finding("surprise", NOTE, name, message, line=node.lineno + offset, cell=cell)
                    estimators[name] = ((order, node.end_lineno or node.lineno), finding)
    for name, (position, finding) in estimators.items():
        uses = (
            (order, node.lineno)
            for order, (_, _, tree) in enumerate(trees)
            for node in ast.walk(tree)
            if isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Load)
        )
        in_functions = any(
            isinstance(node, ast.FunctionDef) and any(isinstance(n, ast.Name) and n.id == name for n in ast.walk(node))
            for _, _, tree in trees
            for node in ast.walk(tree)
        )
        if not in_functions and not any(use > position for use in uses):
            yield finding


def _classes(value: Instance, surface: Surface) -> tuple[str, ...]:
    return (value.name, *surface.classes[value.name].bases)


def _unused_child_run(node: ast.With, names: Names) -> Iterator[Finding]:
    for item in node.items:
        call, name = item.context_expr, item.optional_vars
        if not isinstance(call, ast.Call) or not isinstance(name, ast.Name):
            continue
        functions = names.values(call.func)
        if functions and all(isinstance(v, Function) and v.title.endswith("Run.child_run") for v in functions):
            used = any(isinstance(n, ast.Name) and n.id == name.id for part in node.body for n in ast.walk(part))
            if not used:
                message = f"the child run {name.id!r} is created, but values are logged to its parent"
                yield Finding("surprise", WARNING, name.id, message, f"log with {name.id}.log(…)", node.lineno)


def _compared_process(node: ast.Compare, names: Names) -> Iterator[Finding]:
    values = names.values(node.left)
    with_number = any(isinstance(c, ast.Constant) and isinstance(c.value, int) for c in node.comparators)
    if with_number and values and all(v == ExternalName("subprocess.run()") for v in values):
        message = "subprocess.run returns a CompletedProcess, which never equals a number"
        yield Finding("surprise", WARNING, ast.unparse(node), message, "compare its .returncode", node.lineno)


def _arguments_as_tags(node: ast.Call, names: Names) -> Iterator[Finding]:
    if len(node.args) < 2 or not isinstance(node.args[1], ast.Dict):
        return
    functions = names.values(node.func)
    if functions and all(isinstance(v, Function) and v.title == "Experiment.submit" for v in functions):
        message = "the second argument of submit() is tags; it is not passed to the script"
        remedy = "set the script's arguments in the configuration"
        yield Finding("surprise", NOTE, "submit(…, {…})", message, remedy, node.lineno)


def _gpu_only(tree: ast.Module, names: Names) -> Iterator[Finding]:
    checks_for_gpu = any(
        isinstance(node, ast.Attribute) and node.attr in ("is_available", "device_count") for node in ast.walk(tree)
    )
    if checks_for_gpu or not names.values(ast.Name("torch", ast.Load())):
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            code = ast.unparse(node.func)
            if node.func.attr == "cuda" or names.values(node.func) == {ExternalName("torch.cuda.set_device")}:
                message = f"{code}(…) needs a GPU; without one, the script fails here"
                remedy = "device = 'cuda' if torch.cuda.is_available() else 'cpu', then .to(device)"
                yield Finding("gpu-only", WARNING, code, message, remedy, node.lineno)
                return
