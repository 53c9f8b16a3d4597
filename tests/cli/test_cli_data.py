"""`runyard data` and `runyard datasets`."""

from __future__ import annotations

import json
from pathlib import Path

from cli_support import CommandLine


def test_data_is_uploaded_listed_downloaded_and_deleted(cli: CommandLine, tmp_path: Path) -> None:
    (tmp_path / "data" / "sub").mkdir(parents=True)
    (tmp_path / "data" / "a.txt").write_text("a")
    (tmp_path / "data" / "sub" / "b.txt").write_text("bb")
    assert "Uploaded 2 of 2 files, 3 B" in cli("data", "upload", "data", "/typed").err
    repeated = cli("data", "upload", "data/a.txt", "workspaceblobstore/typed")
    assert (repeated.out, repeated.err) == (
        b"",
        "Nothing to upload: 1 file exists already, 1 B, workspaceblobstore/typed\n",
    )
    lines = cli("data", "ls", "/typed").text.splitlines()
    assert [line.split()[:3] for line in lines[1:]] == [["typed/a.txt", "1", "B"], ["typed/sub/", "2", "B"]]
    listing = json.loads(cli("data", "ls", "/typed", "-r", "--json").out)
    assert [entry["path"] for entry in listing["entries"]] == ["typed/a.txt", "typed/sub/b.txt"]
    assert cli("data", "download", "/typed", "downloads").code == 0
    assert (tmp_path / "downloads" / "typed" / "sub" / "b.txt").read_text() == "bb"
    missing = cli("data", "download", "/missing", "downloads")
    assert (missing.code, missing.err.startswith("error: no files at 'missing' in datastore")) == (1, True)
    unconfirmed = cli("data", "rm", "/typed")
    assert (unconfirmed.code, "add --yes" in unconfirmed.err) == (1, True)
    assert "deleted 2 files" in cli("data", "rm", "/typed", "--yes").err
    deleted = cli("data", "ls", "/typed")
    assert (deleted.code, "'typed' not found in datastore" in deleted.err) == (1, True)


def test_datastores_are_added_shown_and_removed(cli: CommandLine, tmp_path: Path) -> None:
    (tmp_path / "disk").mkdir()
    assert "added typed-disk" in cli("data", "add", "typed-disk", "--folder", "disk").err
    assert "typed-disk" in cli("data", "stores").text
    assert str(tmp_path / "disk") in cli("data", "show", "typed-disk").text
    assert cli("data", "default", "typed-disk").code == 0
    removed = cli("data", "remove", "typed-disk")
    assert removed.err == "removed typed-disk; its files were kept; workspaceblobstore is now the default datastore\n"
    missing = cli("data", "show", "typed-disk")
    assert (missing.code, "no datastore named 'typed-disk'" in missing.err) == (1, True)
    assert "--folder, --bucket and --container" in cli("data", "add", "nothing").err


def test_credentials_come_from_a_file_and_are_not_shown(cli: CommandLine, tmp_path: Path) -> None:
    (tmp_path / "keys.json").write_text('{"access_key_id": "the-id", "secret_access_key": "very-secret"}')
    options = ("--bucket", "b", "--endpoint", "http://127.0.0.1:9", "--credentials", "keys.json", "--untried")
    assert cli("data", "add", "typed-bucket", *options).code == 0
    output = cli("data", "show", "typed-bucket", "--json").text
    assert json.loads(output)["credentials"] == "kept"
    assert "very-secret" not in output
    assert cli("data", "remove", "typed-bucket").code == 0


def test_a_dataset_is_registered_from_files_in_a_datastore(cli: CommandLine, tmp_path: Path) -> None:
    (tmp_path / "letters").mkdir()
    (tmp_path / "letters" / "a.txt").write_text("a")
    for path in ("./letters", "letters", str(tmp_path / "letters")):
        local = cli("datasets", "register", "typed-letters", path)
        assert local.code == 1
        assert local.err.startswith(f"error: {path!r} is a local path")
        assert f"runyard data upload {path} /letters" in local.err
    assert cli("data", "upload", "./letters", "/letters").code == 0
    registered = cli("datasets", "register", "typed-letters", "workspaceblobstore/letters")
    assert registered.text.startswith("typed-letters:1  1 file, 1 B"), registered.err
    unknown = cli("datasets", "register", "typed-letters", "nowhere/letters")
    assert "no datastore named 'nowhere'" in unknown.err
    assert cli("datasets", "remove", "typed-letters", "--yes").code == 0
    cli("data", "rm", "/letters", "--yes")


def test_hints_name_commands(own_cli: CommandLine) -> None:
    own_cli.script("s.py", "")
    own_cli.script("net.pt", "x")
    assert "runyard datasets register NAME DATASTORE/PATH" in own_cli("run", "--input", "x=nothing", "s.py").err
    assert "runyard models register NAME PATH" in own_cli("models", "show", "nothing").err
    assert own_cli("models", "register", "net", "net.pt").code == 0
    assert "--script FILE" in own_cli("deploy", "served", "net").err
    old = own_cli("run", "--framework", "pytorch==1.4", "s.py").err
    assert all(word in old for word in ("--framework pytorch", "--pip", "framework_version"))
