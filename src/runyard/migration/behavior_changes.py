"""Code that runs and does not do what it seems to: what the notebooks of then are known for."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from runyard.migration.names import Foreign, Function, Instance, Names
from runyard.migration.report import NOTE, WARNING, Finding
from runyard.migration.sdk_surface import Surface


def surprises(tree: ast.Module, names: Names) -> Iterator[Finding]:
    for node in ast.walk(tree):
        if isinstance(node, ast.With):
            yield from _silent_child(node, names)
        elif isinstance(node, ast.Compare):
            yield from _compared_process(node, names)
        elif isinstance(node, ast.Call):
            yield from _arguments_as_tags(node, names)
    yield from _only_on_a_gpu(tree, names)


def never_submitted(
    trees: list[tuple[int | None, int, ast.Module]], names: Names, surface: Surface
) -> Iterator[Finding]:
    """Estimators of a whole file that are built, kept under a name, and not looked at again."""
    built: dict[str, tuple[tuple[int, int], Finding]] = {}
    for order, (cell, offset, tree) in enumerate(trees):
        for node in ast.walk(tree):
            if (
                isinstance(node, ast.Assign)
                and isinstance(node.targets[0], ast.Name)
                and isinstance(node.value, ast.Call)
            ):
                made = names.values(node.value)
                if made and all(isinstance(v, Instance) and "Estimator" in _kinds(v, surface) for v in made):
                    name = node.targets[0].id
                    message = f"the estimator {name!r} is built here and never submitted"
                    finding = Finding("surprise", NOTE, name, message, line=node.lineno + offset, cell=cell)
                    built[name] = ((order, node.end_lineno or node.lineno), finding)
    for name, (place, finding) in built.items():
        loads = (
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
        if not in_functions and not any(load > place for load in loads):
            yield finding


def _kinds(value: Instance, surface: Surface) -> tuple[str, ...]:
    return (value.name, *surface.kinds[value.name].bases)


def _silent_child(node: ast.With, names: Names) -> Iterator[Finding]:
    for item in node.items:
        call, name = item.context_expr, item.optional_vars
        if not isinstance(call, ast.Call) or not isinstance(name, ast.Name):
            continue
        opened = names.values(call.func)
        if opened and all(isinstance(v, Function) and v.title.endswith("Run.child_run") for v in opened):
            used = any(isinstance(n, ast.Name) and n.id == name.id for part in node.body for n in ast.walk(part))
            if not used:
                message = f"the child run {name.id!r} is opened and nothing is logged to it, but to its parent"
                yield Finding("surprise", WARNING, name.id, message, f"log by {name.id}.log(…)", node.lineno)


def _compared_process(node: ast.Compare, names: Names) -> Iterator[Finding]:
    left = names.values(node.left)
    with_number = any(isinstance(c, ast.Constant) and isinstance(c.value, int) for c in node.comparators)
    if with_number and left and all(v == Foreign("subprocess.run()") for v in left):
        shown = ast.unparse(node)
        message = "subprocess.run gives a CompletedProcess, which equals no number: this is always the same"
        yield Finding("surprise", WARNING, shown, message, "compare its .returncode", node.lineno)


def _arguments_as_tags(node: ast.Call, names: Names) -> Iterator[Finding]:
    if len(node.args) < 2 or not isinstance(node.args[1], ast.Dict):
        return
    called = names.values(node.func)
    if called and all(isinstance(v, Function) and v.title == "Experiment.submit" for v in called):
        message = "the second argument of submit() is the run's tags: the script gets none of it"
        yield Finding("surprise", NOTE, "submit(…, {…})", message, "arguments go into the configuration", node.lineno)


def _only_on_a_gpu(tree: ast.Module, names: Names) -> Iterator[Finding]:
    asked = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and node.attr in ("is_available", "device_count")
    ]
    if asked or not names.values(ast.Name("torch", ast.Load())):
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            shown = ast.unparse(node.func)
            if node.func.attr == "cuda" or names.values(node.func) == {Foreign("torch.cuda.set_device")}:
                message = f"{shown}(…) needs a GPU: on a machine without one the script ends here"
                remedy = "device = 'cuda' if torch.cuda.is_available() else 'cpu', then .to(device)"
                yield Finding("gpu-only", WARNING, shown, message, remedy, node.lineno)
                return
