"""The pip configuration is read as pip reads it, and translated for uv."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from runyard.environments.uv_settings import uv_settings
from runyard.posix.pip_configuration import read_pip_configuration, redact


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "home" / ".config" / "pip").mkdir(parents=True)
    (tmp_path / "prefix").mkdir()
    (tmp_path / "shared" / "pip").mkdir(parents=True)
    return tmp_path


def read(home: Path, **variables: str) -> dict[str, str]:
    environ = {"HOME": str(home / "home"), "XDG_CONFIG_DIRS": str(home / "shared"), **variables}
    return read_pip_configuration(environ, prefix=str(home / "prefix")).options


def write(path: Path, **options: str) -> None:
    path.write_text("[global]\n" + "".join(f"{name.replace('_', '-')} = {value}\n" for name, value in options.items()))


def test_precedence_of_files_and_variables(home: Path) -> None:
    write(home / "shared" / "pip" / "pip.conf", index_url="https://global", timeout="1", retries="1", pre="yes")
    write(home / "home" / ".config" / "pip" / "pip.conf", index_url="https://user", timeout="2", retries="2")
    write(home / "prefix" / "pip.conf", index_url="https://site", timeout="3")
    options = read(home, PIP_INDEX_URL="https://variable")
    assert [options[name] for name in ("index-url", "timeout", "retries", "pre")] == [
        "https://variable",
        "3",
        "2",
        "yes",
    ]


def test_pip_config_file_is_read_last_and_devnull_disables_files(home: Path) -> None:
    write(home / "prefix" / "pip.conf", index_url="https://site")
    write(home / "extra.conf", index_url="https://extra")
    assert read(home, PIP_CONFIG_FILE=str(home / "extra.conf"))["index-url"] == "https://extra"
    assert "index-url" not in read(home, PIP_CONFIG_FILE=os.devnull)


def test_the_install_section_wins_over_a_later_global_section(home: Path) -> None:
    (home / "home" / ".config" / "pip" / "pip.conf").write_text("[install]\nindex_url = https://install\n")
    write(home / "prefix" / "pip.conf", index_url="https://site")
    assert read(home)["index-url"] == "https://install"


def test_a_damaged_file_is_ignored_with_a_note(home: Path) -> None:
    (home / "prefix" / "pip.conf").write_text("no section here\n")
    environ = {"HOME": str(home / "home"), "XDG_CONFIG_DIRS": str(home / "shared")}
    configuration = read_pip_configuration(environ, prefix=str(home / "prefix"))
    assert str(home / "prefix" / "pip.conf") in configuration.notes[0]


def test_all_index_options_are_translated_for_uv(home: Path) -> None:
    environ = {
        "HOME": str(home / "home"), "PIP_CONFIG_FILE": os.devnull,
        "PIP_INDEX_URL": "https://me:secret@example.org/simple", "PIP_EXTRA_INDEX_URL": "file:///a/simple https://b/simple",
        "PIP_FIND_LINKS": f"{home} https://example.org/wheels", "PIP_TRUSTED_HOST": "example.org",
        "PIP_CERT": "/ca.pem", "PIP_CLIENT_CERT": "/me.pem", "PIP_DEFAULT_TIMEOUT": "180", "PIP_NO_INDEX": "true",
    }  # fmt: skip
    settings = uv_settings(read_pip_configuration(environ), environ)
    assert settings.variables == {
        "UV_DEFAULT_INDEX": "https://me:secret@example.org/simple",
        "UV_EXTRA_INDEX_URL": "file:///a/simple https://b/simple",
        "UV_FIND_LINKS": f"{home},https://example.org/wheels",
        "UV_INSECURE_HOST": "example.org",
        "SSL_CERT_FILE": "/ca.pem",
        "SSL_CLIENT_CERT": "/me.pem",
        "UV_HTTP_TIMEOUT": "180",
        "UV_INDEX_STRATEGY": "unsafe-best-match",
    }
    assert settings.arguments == ("--no-index",)


def test_settings_for_uv_take_precedence() -> None:
    environ = {"PIP_CONFIG_FILE": os.devnull, "PIP_INDEX_URL": "https://pip", "UV_INDEX_URL": "https://uv"}
    settings = uv_settings(read_pip_configuration(environ), environ)
    assert "UV_DEFAULT_INDEX" not in settings.variables
    environ = {"PIP_CONFIG_FILE": os.devnull, "PIP_TIMEOUT": "5", "UV_HTTP_TIMEOUT": "9"}
    assert "UV_HTTP_TIMEOUT" not in uv_settings(read_pip_configuration(environ), environ).variables


def test_a_missing_wheel_folder_is_ignored_with_a_note(tmp_path: Path) -> None:
    environ = {"PIP_CONFIG_FILE": os.devnull, "PIP_FIND_LINKS": str(tmp_path / "nowhere")}
    settings = uv_settings(read_pip_configuration(environ), environ)
    assert "UV_FIND_LINKS" not in settings.variables
    assert "nowhere" in settings.notes[0]


def test_credentials_in_urls_are_redacted() -> None:
    assert (
        redact("from https://me:s3cr3t@example.org/simple and file:///a")
        == "from https://example.org/simple and file:///a"
    )
    assert redact("git+https://token@host/x") == "git+https://host/x"
    assert redact("git+https://me:p@ss@host/x@v1") == "git+https://host/x@v1"
