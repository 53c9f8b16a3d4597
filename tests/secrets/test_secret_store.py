"""Secrets are encrypted in the home folder with a key that is kept apart from them."""

from __future__ import annotations

import base64
import io
import json
import logging
import os
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from runyard.errors import SecretsUnreadable, UserErrorException
from runyard.secrets.cipher import CREDENTIAL, KEY_FILE, Cipher
from runyard.secrets.named import NamedSecrets, SecretNotFound
from runyard.secrets.run_values import protect, read_values, reject_masks, restore, with_references, write_values
from runyard.secrets.vault import RedactingFormatter, Vault
from runyard.spec.folder import RunFolder
from runyard.spec.json import from_json
from runyard.spec.run import RunSpec

VALUE = "opensesame-42"
SPEC = {
    "script": "train.py",
    "arguments": ["--lr", "0.1", "--db", f"postgres://u:{VALUE}@h/d", "--token", VALUE],
    "environment": {"user_managed": True, "variables": {"PIP_TOKEN": VALUE, "LANG": "C"}},
    "environment_variables": {"HF_TOKEN": VALUE, "OMP_NUM_THREADS": "1"},
}


@pytest.fixture
def named(tmp_path: Path) -> NamedSecrets:
    return NamedSecrets(tmp_path, Cipher(tmp_path))


def test_a_secret_is_encrypted_at_rest_and_readable_after_a_restart(named: NamedSecrets, tmp_path: Path) -> None:
    assert named.set("hf-token", VALUE) is True
    assert named.set("hf-token", VALUE) is False
    for path in tmp_path.iterdir():
        assert VALUE.encode() not in path.read_bytes()
        assert base64.b64encode(VALUE.encode()) not in path.read_bytes()
        assert path.stat().st_mode & 0o077 == 0
    assert NamedSecrets(tmp_path, Cipher(tmp_path)).values(["hf-token"]) == {"hf-token": VALUE}


def test_the_first_uses_of_a_key_at_once_create_one_key(tmp_path: Path) -> None:
    """The credentials of datastores and the secrets of users have their own ciphers, of one key file."""
    clients = 8
    for number in range(20):
        home = tmp_path / str(number)
        home.mkdir()
        barrier = threading.Barrier(clients)

        def seal(client: int, home: Path = home, barrier: threading.Barrier = barrier) -> bytes:
            cipher = Cipher(home)
            barrier.wait(timeout=60)
            return cipher.seal(str(client), "a race")

        with ThreadPoolExecutor(clients) as pool:
            sealed = list(pool.map(seal, range(clients)))
        assert [Cipher(home).open(value, "a race") for value in sealed] == [str(client) for client in range(clients)]
        assert [path.name for path in home.iterdir()] == ["secrets.key"]


def test_two_encryptions_of_one_value_differ(tmp_path: Path) -> None:
    cipher = Cipher(tmp_path)
    assert cipher.seal(VALUE, "a") != cipher.seal(VALUE, "a")


def test_a_sealed_value_cannot_be_used_for_another_name(named: NamedSecrets, tmp_path: Path) -> None:
    named.set("harmless", "x" * 10)
    named.set("root-password", VALUE)
    entries = json.loads((tmp_path / "secrets.json").read_text())
    entries["harmless"] = entries["root-password"]
    (tmp_path / "secrets.json").write_text(json.dumps(entries))
    with pytest.raises(SecretsUnreadable, match="'harmless' is damaged"):
        named.values(["harmless"])


def test_a_missing_key_is_an_error_and_not_replaced(named: NamedSecrets, tmp_path: Path) -> None:
    named.set("hf-token", VALUE)
    (tmp_path / "secrets.key").unlink()
    for use in (lambda store: store.values(["hf-token"]), lambda store: store.set("other", "value")):
        with pytest.raises(SecretsUnreadable, match=r"key of the secrets is missing: .*secrets\.key"):
            use(NamedSecrets(tmp_path, Cipher(tmp_path)))
    assert not (tmp_path / "secrets.key").exists()


def test_another_key_is_reported_as_such(named: NamedSecrets, tmp_path: Path) -> None:
    named.set("hf-token", VALUE)
    (tmp_path / "secrets.key").write_bytes(base64.b64encode(os.urandom(32)))
    with pytest.raises(SecretsUnreadable, match="'hf-token' was encrypted with another key"):
        NamedSecrets(tmp_path, Cipher(tmp_path)).values(["hf-token"])


def test_a_key_of_the_wrong_size_is_refused(tmp_path: Path) -> None:
    (tmp_path / "secrets.key").write_text("c2hvcnQ=")
    with pytest.raises(SecretsUnreadable, match="must contain 32 bytes in base64, got 5"):
        Cipher(tmp_path).seal(VALUE, "a")


def test_the_key_can_be_elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home, elsewhere = tmp_path / "home", tmp_path / "keys"
    home.mkdir()
    elsewhere.mkdir()
    (elsewhere / "key").write_bytes(base64.b64encode(os.urandom(32)))
    (elsewhere / CREDENTIAL).write_bytes(base64.b64encode(os.urandom(32)))
    monkeypatch.setenv("CREDENTIALS_DIRECTORY", str(elsewhere))
    assert Cipher(home).key_path == elsewhere / CREDENTIAL
    monkeypatch.setenv(KEY_FILE, str(elsewhere / "key"))
    sealed = Cipher(home).seal(VALUE, "a")
    assert Cipher(home).open(sealed, "a") == VALUE
    assert list(home.iterdir()) == []
    monkeypatch.setenv(KEY_FILE, str(elsewhere / "typo"))
    with pytest.raises(SecretsUnreadable, match="typo"):
        Cipher(home).seal(VALUE, "a")


def test_a_key_file_that_others_can_read_is_closed(tmp_path: Path) -> None:
    Cipher(tmp_path).seal(VALUE, "a")
    (tmp_path / "secrets.key").chmod(0o644)
    Cipher(tmp_path).seal(VALUE, "a")
    assert (tmp_path / "secrets.key").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("name", ["", "1st", "a b", "a/b", "../x", "é", "a" * 128])
def test_invalid_names_are_refused(named: NamedSecrets, name: str) -> None:
    with pytest.raises(UserErrorException, match="invalid name"):
        named.set(name, VALUE)


@pytest.mark.parametrize("value", ["", "xxxx\0", "x" * 65_537, "xxxx\ud800"])
def test_invalid_values_are_refused_without_being_shown(named: NamedSecrets, value: str) -> None:
    with pytest.raises(UserErrorException) as error:
        named.set("name", value)
    assert "xxxx" not in str(error.value)


def test_a_missing_secret_is_named_together_with_the_command_to_set_it(named: NamedSecrets) -> None:
    with pytest.raises(UserErrorException) as error:
        named.check({"HF_TOKEN": "hf-token"})
    assert error.value.message == "secret 'hf-token' does not exist"
    assert error.value.hint == "runyard secrets set hf-token"


@pytest.mark.parametrize("variable", ["RUNYARD_HOME", "A-B", "1A", "", "PATH"])
def test_a_secret_cannot_be_any_variable(named: NamedSecrets, variable: str) -> None:
    named.set("hf-token", VALUE)
    with pytest.raises(UserErrorException, match="cannot be the variable of a secret"):
        named.check({variable: "hf-token"})


def test_deleting_an_unknown_secret_is_an_error(named: NamedSecrets) -> None:
    named.set("other", VALUE)
    with pytest.raises(SecretNotFound, match="'hf-token' does not exist"):
        named.delete("hf-token")
    named.delete("other")
    assert named.list() == []


def test_values_in_clear_are_masked_and_can_be_restored() -> None:
    masked, values = protect(SPEC)
    assert VALUE not in json.dumps(masked)
    assert masked["environment_variables"] == {"HF_TOKEN": "***", "OMP_NUM_THREADS": "1"}
    assert masked["arguments"] == ["--lr", "0.1", "--db", "postgres://u:***@h/d", "--token", "***"]
    assert restore(masked, values) == SPEC
    assert protect(masked)[1] == protect({"script": "train.py"})[1]


def test_restoring_keeps_what_was_changed_on_purpose() -> None:
    masked, values = protect(SPEC)
    masked["environment_variables"]["HF_TOKEN"] = "another"
    masked["arguments"] = ["--token", "***", "--more"]
    restored = restore(masked, values)
    assert restored["environment_variables"]["HF_TOKEN"] == "another"
    assert restored["arguments"] == ["--token", VALUE, "--more"]


def test_secret_parts_of_arguments_become_variables() -> None:
    masked, values = protect(SPEC)
    spec, variables = with_references(from_json(RunSpec, masked), values)
    assert spec.arguments[3] == "postgres://u:${RUNYARD_ARGUMENT_3_0}@h/d"
    assert spec.arguments[5] == "${RUNYARD_ARGUMENT_5_0}"
    assert variables == {
        "HF_TOKEN": VALUE,
        "PIP_TOKEN": VALUE,
        "RUNYARD_ARGUMENT_3_0": VALUE,
        "RUNYARD_ARGUMENT_5_0": VALUE,
    }


def test_a_copied_mask_is_refused() -> None:
    with pytest.raises(UserErrorException, match="'HF_TOKEN' has a masked value"):
        reject_masks({"environment_variables": {"HF_TOKEN": "***"}})


def test_sealed_values_of_one_run_cannot_be_opened_for_another(tmp_path: Path) -> None:
    cipher = Cipher(tmp_path)
    first, second = (RunFolder(tmp_path / "runs" / name) for name in ("first", "second"))
    for folder in (first, second):
        folder.root.mkdir(parents=True)
    values = protect(SPEC)[1]
    write_values(cipher, first, "first", values)
    assert VALUE.encode() not in first.sealed_values.read_bytes()
    assert first.sealed_values.stat().st_mode & 0o777 == 0o600
    assert read_values(cipher, first, "first") == values
    second.sealed_values.write_bytes(first.sealed_values.read_bytes())
    with pytest.raises(SecretsUnreadable, match="run second is damaged"):
        read_values(cipher, second, "second")
    first.sealed_values.write_bytes(b"")
    with pytest.raises(SecretsUnreadable):
        read_values(cipher, first, "first")


def test_the_log_of_the_yard_masks_opened_values_and_patterns_also_in_tracebacks(tmp_path: Path) -> None:
    vault, logger, output = Vault(tmp_path), logging.Logger("yard"), io.StringIO()
    handler = logging.StreamHandler(output)
    handler.setFormatter(RedactingFormatter(logging.Formatter("%(levelname)s %(message)s"), vault))
    logger.addHandler(handler)
    vault.remember([VALUE])
    try:
        raise ValueError(f"cannot start --token {VALUE}")
    except ValueError:
        logger.exception("run %s: %s", "digits_1", f"postgres://u:pw@h and {VALUE}")
    text = output.getvalue()
    assert text.startswith("ERROR run digits_1: postgres://u:***@h and ***\n")
    assert text.endswith("ValueError: cannot start --token ***\n")
    assert VALUE not in text
