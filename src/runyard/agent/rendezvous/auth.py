"""How two agents of a run prove to each other that they know its secret, which is never sent. Pure.

The lead begins with a nonce. The member answers with who it is, a nonce of its own and a proof over both; the lead
answers with its own proof. From then on each line carries a seal under a key that only this connection has.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
from dataclasses import asdict, dataclass
from typing import Any, Optional

LEAD, MEMBER = "lead", "member"
_SEAL = 32


@dataclass(frozen=True)
class Claim:
    """What is proven: another run, another attempt, another node or an older connection has another proof."""

    run_id: str
    attempt: int
    node: int
    lead_nonce: str
    member_nonce: str


def nonce() -> str:
    return os.urandom(16).hex()


def proof(secret: str, who: str, claim: Claim, heard: int) -> str:
    """``heard``: how far the one who proves has understood the other one, over earlier connections."""
    return _signed(secret.encode(), ["proof", who, heard, asdict(claim)])


def is_proof(said: Any, secret: str, who: str, claim: Claim, heard: int) -> bool:
    return isinstance(said, str) and hmac.compare_digest(said.encode(), proof(secret, who, claim, heard).encode())


class Seals:
    """Of the lines of one connection in one direction. They are counted, so that none can be repeated or left out."""

    def __init__(self, secret: str, who: str, claim: Claim) -> None:
        self._key = _signed(secret.encode(), ["key", who, asdict(claim)]).encode()
        self._count = 0

    def seal(self, text: bytes) -> bytes:
        self._count += 1
        return self._seal(text) + b" " + text

    def open(self, line: bytes) -> Optional[bytes]:
        """None: it is not from whom it should be."""
        self._count += 1
        seal, _, text = line.partition(b" ")
        return text if hmac.compare_digest(seal, self._seal(text)) else None

    def _seal(self, text: bytes) -> bytes:
        made = hmac.new(self._key, b"%d " % self._count + text, hashlib.sha256)
        return made.hexdigest()[:_SEAL].encode()


def _signed(key: bytes, what: Any) -> str:
    return hmac.new(key, json.dumps(what, sort_keys=True).encode(), hashlib.sha256).hexdigest()
