"""Mutual authentication of two agents by the run's secret, which is never sent. Pure.

The lead sends a nonce. The member replies with its identity, a nonce and a proof over both; the lead replies with its
own proof. After that, every line carries a signature under a key that only this connection has.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
from dataclasses import asdict, dataclass
from typing import Any, Optional

LEAD, MEMBER = "lead", "member"
_SIGNATURE_CHARACTERS = 32


@dataclass(frozen=True)
class Handshake:
    """The signed values: a proof for another run, attempt, node or connection is not valid."""

    run_id: str
    attempt: int
    node: int
    lead_nonce: str
    member_nonce: str


def make_nonce() -> str:
    return os.urandom(16).hex()


def make_proof(secret: str, role: str, handshake: Handshake, received: int) -> str:
    """``received``: number of the last message that the prover has received over earlier connections."""
    return _sign(secret.encode(), ["proof", role, received, asdict(handshake)])


def verify_proof(proof: Any, secret: str, role: str, handshake: Handshake, received: int) -> bool:
    expected = make_proof(secret, role, handshake, received)
    return isinstance(proof, str) and hmac.compare_digest(proof.encode(), expected.encode())


class LineSigner:
    """Signs or verifies the lines of one connection in one direction. Lines are counted, so that none can be repeated
    or omitted."""

    def __init__(self, secret: str, role: str, handshake: Handshake) -> None:
        self._key = _sign(secret.encode(), ["key", role, asdict(handshake)]).encode()
        self._count = 0

    def sign(self, text: bytes) -> bytes:
        self._count += 1
        return self._signature(text) + b" " + text

    def verify(self, line: bytes) -> Optional[bytes]:
        """The text of the line; None if the signature is wrong."""
        self._count += 1
        signature, _, text = line.partition(b" ")
        return text if hmac.compare_digest(signature, self._signature(text)) else None

    def _signature(self, text: bytes) -> bytes:
        digest = hmac.new(self._key, b"%d " % self._count + text, hashlib.sha256)
        return digest.hexdigest()[:_SIGNATURE_CHARACTERS].encode()


def _sign(key: bytes, value: Any) -> str:
    return hmac.new(key, json.dumps(value, sort_keys=True).encode(), hashlib.sha256).hexdigest()
