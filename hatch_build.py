"""Build hook of hatchling: refuses a wheel without the studio, because nothing in it would say that it is missing."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

STUDIO = "src/runyard/server/studio/index.html"
WITHOUT_STUDIO = "RUNYARD_BUILD_WITHOUT_STUDIO"


class StudioCheck(BuildHookInterface[Any]):
    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        is_editable = version == "editable"  # `make ui` adds the studio to the checkout at any time
        if is_editable or (Path(self.root) / STUDIO).is_file() or os.environ.get(WITHOUT_STUDIO) == "1":
            return
        raise SystemExit(  # no traceback
            f"error: the studio was not built: {STUDIO} does not exist. Run `make ui` first, which needs Node 20; "
            f"or set {WITHOUT_STUDIO}=1 to build a package without the studio"
        )
