"""Writes the stubs of the `azureml` modules for editors and type checkers: `python scripts/azureml_stubs.py`.

The modules are created when they are imported, so they have no source files.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from runyard.sdk.azureml.module_finder import runyard_name
from runyard.sdk.azureml.names import MODULES

FOLDER = Path(__file__).parent.parent / "distributions" / "runyard-azureml" / "src" / "azureml-stubs"


def stubs() -> dict[str, str]:
    """Return the text of each stub by its path below the folder."""
    texts = {}
    for module, names in MODULES.items():
        parts = module.split(".")[1:]
        package = any(other.startswith(f"{module}.") for other in MODULES)
        path = "/".join([*parts, "__init__.pyi"] if package else [*parts[:-1], f"{parts[-1]}.pyi"])
        rows = _sorted(names)
        lines = [f"from {module_name} import {own_name} as {own_name}" for _, module_name, own_name in rows]
        lines += [f"\n{name} = {own_name}" for name, _, own_name in rows if name != own_name]
        texts[path] = "".join(f"{line}\n" for line in lines)
    return texts


def _sorted(names: str) -> list[tuple[str, str, str]]:
    rows = []
    for name in names.split():
        target = runyard_name(name)
        assert target is not None, f"{name} is not in the table"
        rows.append((name, *target))
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
