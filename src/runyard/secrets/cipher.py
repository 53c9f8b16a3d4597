"""Authenticated encryption with the yard's key: AES-256-GCM of the `cryptography` package.

The key is the file RUNYARD_SECRETS_KEY_FILE, else the systemd credential `runyard-secrets-key`, else `secrets.key` in
the home folder, which is created on first use.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import os
import threading
from contextlib import suppress
from pathlib import Path

from runyard.errors import SecretsUnreadable
from runyard.posix.atomic_write import draft_path, flush_to_disk
from runyard.spec.folder import HomeFolder

KEY_FILE = "RUNYARD_SECRETS_KEY_FILE"
CREDENTIAL = "runyard-secrets-key"
_KEY_BYTES, _NONCE_BYTES, _ID_BYTES = 32, 12, 4
_NEW_KEY = "head -c 32 /dev/urandom | base64"


class Cipher:
    """Thread-safe. The key is read on first use, and stays in memory."""

    def __init__(self, home: Path) -> None:
        self._home = home
        self._lock = threading.Lock()
        self._key: bytes | None = None

    @property
    def key_path(self) -> Path:
        configured, credentials = os.environ.get(KEY_FILE), os.environ.get("CREDENTIALS_DIRECTORY")
        if configured:
            return Path(configured).expanduser()
        if credentials and (Path(credentials) / CREDENTIAL).exists():
            return Path(credentials) / CREDENTIAL
        return HomeFolder(self._home).secrets_key

    def seal(self, text: str, purpose: str) -> bytes:
        """Encrypt a text. It can be opened only for the same purpose, such as the name of the secret."""
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM  # most yards never need it

        key, nonce = self._load_key(create=True), os.urandom(_NONCE_BYTES)
        sealed = AESGCM(key).encrypt(nonce, text.encode("utf-8", "surrogateescape"), purpose.encode())
        return _key_id(key) + nonce + sealed

    def open(self, sealed: bytes, purpose: str) -> str:
        """Decrypt a text.

        Raises:
            SecretsUnreadable: The key is missing or another one, or the sealed text was changed.
        """
        from cryptography.exceptions import InvalidTag
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        key = self._load_key(create=False)
        if sealed[:_ID_BYTES] != _key_id(key):
            raise SecretsUnreadable(
                f"{purpose} was encrypted with another key than {self.key_path}",
                hint="restore the key that belongs to this home folder, or set the secret again",
            )
        nonce, content = sealed[_ID_BYTES : _ID_BYTES + _NONCE_BYTES], sealed[_ID_BYTES + _NONCE_BYTES :]
        try:
            return AESGCM(key).decrypt(nonce, content, purpose.encode()).decode("utf-8", "surrogateescape")
        except (InvalidTag, ValueError):
            raise SecretsUnreadable(f"{purpose} is damaged: it was changed on disk", hint="set it again") from None

    def _load_key(self, *, create: bool) -> bytes:
        with self._lock:
            if self._key is None:
                self._key = self._read_key(create)
            return self._key

    def _read_key(self, create: bool) -> bytes:
        path, own = self.key_path, HomeFolder(self._home).secrets_key
        try:
            if path == own and path.stat().st_mode & 0o077:
                path.chmod(0o600)  # a restored or copied home may have lost the mode
            key = base64.b64decode(path.read_bytes(), validate=False)
        except FileNotFoundError:
            if create and path == own and not HomeFolder(self._home).secrets.exists():
                _create_key(path)
                return self._read_key(create=False)
            raise SecretsUnreadable(
                f"the key of the secrets is missing: {path}",
                hint=f"restore the file, or delete {HomeFolder(self._home).secrets} and set the secrets again"
                if path == own
                else f"create it with `{_NEW_KEY} > {path}`",
            ) from None
        except (OSError, binascii.Error) as error:
            raise SecretsUnreadable(f"cannot read the key of the secrets: {path}: {error}") from error
        if len(key) != _KEY_BYTES:
            raise SecretsUnreadable(
                f"{path} must contain {_KEY_BYTES} bytes in base64, got {len(key)}",
                hint=f"create a key with `{_NEW_KEY} > {path}`",
            )
        return key


def _create_key(path: Path) -> None:
    """Create the key, unless another thread has created it: values that are sealed with a replaced key are lost."""
    draft = draft_path(path)
    try:
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        with open(descriptor, "wb") as file:
            file.write(base64.b64encode(os.urandom(_KEY_BYTES)) + b"\n")
        flush_to_disk(draft)
        with suppress(FileExistsError):
            os.link(draft, path)  # unlike a rename, it does not replace an existing file
    finally:
        with suppress(OSError):
            draft.unlink()


def _key_id(key: bytes) -> bytes:
    """Distinguishes keys in error messages; it reveals nothing about the key."""
    return hashlib.sha256(b"runyard key id" + key).digest()[:_ID_BYTES]
