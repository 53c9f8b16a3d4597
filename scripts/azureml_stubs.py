"""Writes what editors and type checkers read of the `azureml` names: `python scripts/azureml_stubs.py`.

The modules themselves are made when they are imported, so there is no file of them to be read.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from runyard.sdk.azureml.module_finder import runyard_name
from runyard.sdk.azureml.names import MODULES

FOLDER = Path(__file__).parent.parent / "distributions" / "runyard-azureml" / "src" / "azureml-stubs"


def stubs() -> dict[str, str]:
    """Path below the folder, and text."""
    found = {}
    for module, names in MODULES.items():
        parts = module.split(".")[1:]
        package = any(other.startswith(f"{module}.") for other in MODULES)
        path = "/".join([*parts, "__init__.pyi"] if package else [*parts[:-1], f"{parts[-1]}.pyi"])
        rows = _sorted(names)
        lines = [f"from {home} import {there} as {there}" for _, home, there in rows]
        lines += [f"\n{name} = {there}" for name, _, there in rows if name != there]
        found[path] = "".join(f"{line}\n" for line in lines)
    return found


def _sorted(names: str) -> list[tuple[str, str, str]]:
    rows = []
    for name in names.split():
        home = runyard_name(name)
        assert home is not None, f"{name} has no home"
        rows.append((name, *home))
    return sorted(rows, key=lambda row: (row[1], row[0]))


def main() -> None:
    if FOLDER.exists():
        shutil.rmtree(FOLDER)
    for path, text in stubs().items():
        target = FOLDER / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")
    print(f"{len(stubs())} stubs in {FOLDER}")


if __name__ == "__main__":
    main()
