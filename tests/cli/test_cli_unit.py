"""`runyard yard install-unit`, and a yard that systemd starts."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from runyard.client.systemd_unit import unit_name, unit_text
from support import a_home, yard_pid


def test_the_unit_is_valid(tmp_path: Path) -> None:
    analyze = shutil.which("systemd-analyze")
    if analyze is None:
        pytest.skip("needs systemd-analyze")
    for number, options in enumerate(({}, {"user": "root"}, {"listen": ("127.0.0.1", 8787)})):
        path = tmp_path / f"runyard-{number}.service"
        path.write_text(unit_text(Path('/srv/100% "of" $HOME'), **options))  # type: ignore[arg-type]
        result = subprocess.run([analyze, "verify", str(path)], capture_output=True, text=True, timeout=60)
        assert (result.stdout, result.stderr, result.returncode) == ("", "", 0)


def test_the_unit_is_written_for_the_home_folder(cli, tmp_path: Path) -> None:
    cli.environment["XDG_CONFIG_HOME"] = str(tmp_path)
    result = cli("yard", "install-unit")
    path = Path(result.text.strip())
    assert path.parent == tmp_path / "systemd" / "user"
    assert f'--home "{cli.home}"' in path.read_text()
    assert "KillMode=process" in path.read_text()
    assert f"systemctl --user enable --now {path.name}" in result.err
    assert "enable-linger" in result.err


def test_a_wrong_address_is_rejected(cli) -> None:
    result = cli("yard", "install-unit", "--print", "--listen", "8787")
    assert result.code == 1
    assert "--listen must be ADDRESS:PORT, got '8787'" in result.err


def test_each_home_folder_has_its_own_unit() -> None:
    assert unit_name(Path.home() / ".runyard") == "runyard.service"
    assert unit_name(Path("/srv/team yard")) == "runyard-srv-team-yard.service"


def test_a_yard_reports_to_systemd_when_it_accepts_requests(tmp_path: Path) -> None:
    with a_home() as home, socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(str(tmp_path / "notify"))
        manager.settimeout(60)
        command = [sys.executable, "-m", "runyard.yard", "--home", str(home), "--idle-s", "inf"]
        yard = subprocess.Popen(command, env={**os.environ, "NOTIFY_SOCKET": str(tmp_path / "notify")})
        try:
            assert manager.recv(100) == b"READY=1"
            assert yard_pid(home) == yard.pid
        finally:
            yard.send_signal(signal.SIGTERM)
            yard.wait(60)
