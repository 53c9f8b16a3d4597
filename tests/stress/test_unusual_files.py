"""Unusual files: special names, links out of the run, thousands of files, large files."""

from __future__ import annotations

import io
import os
from pathlib import Path

import pytest

from runyard import Experiment
from runyard.errors import UserErrorException
from support import eventually, with_this_python

ODD_NAMES = [
    "plain.txt",
    "ünï-çødé 日本.txt",
    " lead and trail ",
    "100% #1? a&b=c;d.txt",
    "%2e%2e%2fetc",
    "%00",
    "new\nline",
    "-rf",
    "'\"`$HOME`\"'",
    "back\\slash",
    "dots...",
    "tab\there",
    "deep/er/🎈/x",
    "n" * 250,
    "nul.con",
    "+plus+",
]

WRITE_FILES = """
import json, os, sys
for number, name in enumerate(json.load(open('names.json'))):
    path = os.path.join('outputs', name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    open(path, 'w').write(str(number))
"""


def test_files_of_any_name_are_stored(experiment: Experiment, project, tmp_path: Path) -> None:
    import json

    folder = project(train=WRITE_FILES)
    (folder / "names.json").write_text(json.dumps(ODD_NAMES))
    run = experiment.submit(with_this_python(folder))
    run.wait_for_completion()
    expected = {f"outputs/{name}" for name in ODD_NAMES}
    assert expected <= set(run.get_file_names())
    run.download_files(prefix="outputs", output_directory=str(tmp_path / "all"), append_prefix=False)
    for number, name in enumerate(ODD_NAMES):
        assert (tmp_path / "all" / name).read_text() == str(number)
        run.download_file(f"outputs/{name}", str(tmp_path / "file"))
        assert (tmp_path / "file").read_text() == str(number)
    listed = {path.relative_to(tmp_path / "all").as_posix() for path in (tmp_path / "all").rglob("*") if path.is_file()}
    assert listed == set(ODD_NAMES)


def test_files_of_any_name_can_be_uploaded(experiment: Experiment, tmp_path: Path) -> None:
    with experiment.start_logging(snapshot_directory=None) as run:
        for number, name in enumerate(ODD_NAMES):
            run.upload_file(f"mine/{name}", io.BytesIO(str(number).encode()))
        assert set(run.get_file_names()) == {f"mine/{name}" for name in ODD_NAMES}
        for number, name in enumerate(ODD_NAMES):
            run.download_file(f"mine/{name}", str(tmp_path / "file"))
            assert (tmp_path / "file").read_text() == str(number)


LINKS = """
import os, shutil
secret = {secret!r}
os.symlink(secret, 'outputs/passwd')
os.symlink(os.path.dirname(secret), 'outputs/etc')
os.symlink('/nowhere', 'outputs/broken')
os.symlink('.', 'outputs/loop')
os.symlink('../../order.json', 'outputs/order')
open('outputs/inside.txt', 'w').write('inside')
os.symlink('inside.txt', 'outputs/alias.txt')
os.symlink(secret, 'logs/passwd')
shutil.rmtree('logs/sub', ignore_errors=True)
os.symlink(os.path.dirname(secret), 'logs/sub')
os.mkfifo('outputs/pipe')
print('ready', flush=True)
import time
while not os.path.exists({go!r}):
    time.sleep(0.01)
"""


def test_a_link_never_makes_an_outside_file_readable(experiment: Experiment, project, tmp_path: Path) -> None:
    (tmp_path / "private").mkdir()
    secret = tmp_path / "private" / "secret.txt"
    secret.write_text("secret")
    go = tmp_path / "go"
    run = experiment.submit(with_this_python(project(train=LINKS.format(secret=str(secret), go=str(go)))))

    def says_ready() -> bool:
        name = "azureml-logs/70_driver_log.txt"
        return name in run.get_file_names() and b"ready" in run._connection.read(f"/api/runs/{run.id}/files/{name}")

    eventually(says_ready, "the links exist")
    for moment in ("live", "ended"):
        if moment == "ended":
            go.touch()
            run.wait_for_completion()
        for name in run.get_file_names():
            run.download_file(name, str(tmp_path / "got"))
            assert b"secret" not in (tmp_path / "got").read_bytes() or name.startswith("azureml-logs"), name
        for name in ("outputs/passwd", "outputs/etc/secret.txt", "logs/passwd", "logs/sub/secret.txt", "outputs/order"):
            with pytest.raises(UserErrorException):
                run.download_file(name, str(tmp_path / "got"))
    assert {"outputs/inside.txt", "outputs/alias.txt"} <= set(run.get_file_names())
    warnings = " ".join(warning["message"] for warning in run.get_details()["warnings"])
    assert "passwd was left out" in warnings
    assert secret.read_text() == "secret"


@pytest.mark.parametrize("name", ["outputs", "logs"])
def test_files_behind_a_linked_folder_are_not_moved(experiment: Experiment, project, tmp_path: Path, name: str) -> None:
    theirs = tmp_path / "theirs"
    theirs.mkdir()
    (theirs / "precious.bin").write_bytes(b"precious" * 1000)
    script = f"import os, shutil\nshutil.rmtree({name!r})\nos.symlink({str(theirs)!r}, {name!r})"
    run = experiment.submit(with_this_python(project(train=script)))
    details = run.wait_for_completion()
    assert (theirs / "precious.bin").read_bytes() == b"precious" * 1000
    assert (theirs / "precious.bin").stat().st_nlink == 1
    assert f"{name}/precious.bin" not in run.get_file_names()
    assert f"{name}/ was left out: it is a link" in str(details["warnings"])


def test_folders_outside_of_the_run_are_not_watched(experiment: Experiment, project, tmp_path: Path) -> None:
    theirs = tmp_path / "theirs"
    theirs.mkdir()
    (theirs / "precious.txt").write_text("precious")
    for odd in (str(theirs), "../../../..", ".."):
        config = with_this_python(project(train="print(1)"))
        config.run_config.history.directories_to_watch = [odd]
        with pytest.raises(UserErrorException, match="directories_to_watch"):
            experiment.submit(config)
    assert (theirs / "precious.txt").read_text() == "precious"
    assert list(experiment.get_runs()) == []


def test_uploaded_outputs_of_an_interactive_run_leave_links_out(
    experiment: Experiment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = tmp_path / "secret.txt"
    secret.write_text("secret")
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    with experiment.start_logging(snapshot_directory=None) as run:
        Path("outputs/model.txt").write_text("model")
        Path("outputs/link.txt").symlink_to("model.txt")
        Path("outputs/secret.txt").symlink_to(secret)
        Path("outputs/folder").symlink_to(tmp_path)
    assert run.get_file_names() == ["outputs/link.txt", "outputs/model.txt"]


@pytest.mark.real
def test_five_thousand_small_outputs_are_stored(experiment: Experiment, project, tmp_path: Path) -> None:
    script = "for n in range(5000):\n    open(f'outputs/{n:04}.txt', 'w').write(str(n % 100))"
    run = experiment.submit(with_this_python(project(train=script)))
    run.wait_for_completion()
    names = [name for name in run.get_file_names() if name.startswith("outputs/")]
    assert names == [f"outputs/{n:04}.txt" for n in range(5000)]
    run.download_files(prefix="outputs/49", output_directory=str(tmp_path / "got"), append_prefix=True)
    assert len(list((tmp_path / "got" / "outputs").iterdir())) == 100


@pytest.mark.real
def test_a_large_file_is_stored_byte_for_byte(experiment: Experiment, project, tmp_path: Path, home: Path) -> None:
    size = 200_000_000
    script = f"""
with open('outputs/big.bin', 'wb') as file:
    file.write(b'begin')
    file.truncate({size} - 3)
    file.seek(0, 2)
    file.write(b'end')
"""
    run = experiment.submit(with_this_python(project(train=script)))
    run.wait_for_completion()
    run.download_file("outputs/big.bin", str(tmp_path / "big.bin"))
    with open(tmp_path / "big.bin", "rb") as got:
        assert got.read(5) == b"begin"
        got.seek(-3, os.SEEK_END)
        assert got.read() == b"end"
        assert got.tell() == size
    again = run.upload_file("copy.bin", str(tmp_path / "big.bin"))
    assert again.size == size
    contents = [path for path in (home / "artifacts").rglob("*") if path.is_file() and path.stat().st_size == size]
    assert len(contents) == 1


@pytest.mark.real
def test_a_log_can_be_downloaded_while_it_grows(experiment: Experiment, project, tmp_path: Path) -> None:
    go = tmp_path / "stop"
    script = f"""
import os, sys, time
n = 0
while not os.path.exists({str(go)!r}):
    sys.stdout.write(''.join(f'{{i:09d}}\\n' for i in range(n, n + 100))); n += 100
    time.sleep(0.001)
"""
    run = experiment.submit(with_this_python(project(train=script)))
    name = "azureml-logs/70_driver_log.txt"
    eventually(lambda: name in run.get_file_names(), "it writes")
    for _ in range(100):
        run.download_file(name, str(tmp_path / "log"))
        lines = (tmp_path / "log").read_bytes().split(b"\n")
        complete_lines = lines[:-1]
        assert not complete_lines or int(complete_lines[-1]) == len(complete_lines) - 1
    go.touch()
    run.wait_for_completion()


def test_a_listing_tolerates_files_that_disappear(experiment: Experiment, project, tmp_path: Path) -> None:
    go = tmp_path / "stop"
    script = f"""
import os
while not os.path.exists({str(go)!r}):
    for n in range(200):
        open(f'logs/{{n}}', 'w').close()
    for n in range(200):
        os.remove(f'logs/{{n}}')
"""
    run = experiment.submit(with_this_python(project(train=script)))
    eventually(lambda: run.get_status() == "Running", "it runs")
    for _ in range(40):
        run.get_file_names()
    go.touch()
    assert run.wait_for_completion()["status"] == "Completed"
