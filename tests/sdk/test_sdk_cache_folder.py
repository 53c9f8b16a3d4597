"""The cache folder of the SDK where there is no home folder."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path


def test_a_temporary_cache_folder_is_deleted_at_exit(tmp_path: Path) -> None:
    code = "from runyard.sdk.training.submit import _cache_folder\nprint(_cache_folder())"
    environment = {**os.environ, "XDG_CACHE_HOME": "/dev/null/none", "TMPDIR": str(tmp_path)}
    result = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert Path(result.stdout.strip()).parent == tmp_path
    assert list(tmp_path.iterdir()) == []
