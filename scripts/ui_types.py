"""Write the studio's API types, ui/src/api/schema.d.ts, from the OpenAPI document of the server.

`--check` writes nothing and fails if the file is out of date. Needs neither a running server nor the internet.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

from runyard.server.app import create_app
from runyard.server.openapi import referenced_schemas

UI = Path(__file__).resolve().parent.parent / "ui"
TYPES = UI / "src" / "api" / "schema.d.ts"


def main() -> int:
    types = generate(response_schemas())
    if "--check" not in sys.argv[1:]:
        TYPES.write_text(types, encoding="utf-8")
    elif not TYPES.exists() or TYPES.read_text(encoding="utf-8") != types:
        print(
            f"{TYPES.relative_to(UI.parent)} is out of date: run .venv/bin/python scripts/ui_types.py",
            file=sys.stderr,
        )
        return 1
    return 0


def response_schemas() -> dict[str, Any]:
    """The document reduced to the schemas of responses. Routes are registered but never called, so mocks suffice."""
    document = create_app(*[MagicMock()] * 6).openapi()
    names = sorted(referenced_schemas(document, "responses"))
    schemas = {name: bare(document["components"]["schemas"][name]) for name in names}
    return {**document, "info": {"title": "Runyard", "version": "0"}, "paths": {}, "components": {"schemas": schemas}}


def bare(schema: Any) -> Any:
    """A schema without its titles, descriptions and defaults: rewording a docstring must not change the types."""
    if isinstance(schema, list):
        return [bare(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    properties = {name: bare(value) for name, value in schema.get("properties", {}).items()}
    prose = ("title", "description", "default", "properties")
    rest = {key: bare(value) for key, value in schema.items() if key not in prose}
    return {**rest, "properties": properties} if properties else rest


def generate(document: dict[str, Any]) -> str:
    with tempfile.TemporaryDirectory() as folder:
        source, types = Path(folder, "openapi.json"), Path(folder, "schema.d.ts")
        source.write_text(json.dumps(document), encoding="utf-8")
        command = ["node_modules/.bin/openapi-typescript", source, "--output", types]
        subprocess.run(command, cwd=UI, check=True, stdout=subprocess.DEVNULL)
        return types.read_text(encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
