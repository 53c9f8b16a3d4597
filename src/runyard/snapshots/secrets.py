"""Detects files that look like secrets: snapshots are stored and shared, so these files are excluded by default."""

from __future__ import annotations

import os
import re

from runyard.spec.redaction import PRIVATE_KEY_MARKER

_HEADS = (b".env", b"id_", b".netrc", b"_netrc", b".pypirc", b".git-credentials", b"credentials", b"client_secret")
_TAILS = (b".pem", b".key", b"credentials.json", b"credential.json", b"account.json")
_BY_NAME = re.compile(
    rb"\.env(?:\.(?!example$|sample$|template$|dist$).*)?"
    rb"|id_(?:rsa|dsa|ecdsa|ed25519)(?:_sk)?"
    rb"|[._]netrc|\.pypirc|\.git-credentials"
    rb"|(?:.*[-_.])?credentials?\.json|client_secret.*\.json",
    re.DOTALL,
)
_HEAD_BYTES = 4096


def looks_secret(root: bytes, path: bytes, name: bytes) -> bool:
    if not (name.startswith(_HEADS) or name.endswith(_TAILS)):
        return False  # most files: two calls, no regular expression
    if _BY_NAME.fullmatch(name):
        return True
    if name == b"credentials":
        return (b"/" + path).endswith(b"/.aws/credentials")
    if name.endswith((b".pem", b".key")):
        return PRIVATE_KEY_MARKER.encode() in _head(
            root + b"/" + path
        )  # .pem files can also be certificates, which are not secret
    if name.endswith(b"account.json"):
        return b'"private_key"' in _head(root + b"/" + path)
    return False


def _head(path: bytes) -> bytes:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return b""  # the error is reported when the file is hashed
    try:
        return os.read(descriptor, _HEAD_BYTES)
    except OSError:
        return b""
    finally:
        os.close(descriptor)
